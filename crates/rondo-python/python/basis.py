# The helper inside the interpreter. Its files are joined in one namespace of its own, with builtins
# of its own: whatever the user's code does to `builtins`, `sys` or a module, this goes on. Only the
# standard library is used, and of that, where the user's code has run, only what is written in C.
#
# The bootstrap has taken the working directory off `sys.path`, so that a file of the user's named
# `json.py` is not taken for the standard library's; `stdlib` does the same later.

import _ast
import _signal
import builtins as user_builtins
import fcntl
import linecache
import os
import sys
import traceback
import types
from json.decoder import JSONDecoder
from json.encoder import encode_basestring as quote

FLAG_COROUTINE = 0x80  # `inspect.CO_COROUTINE`
FLAG_AWAIT = _ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
FLAG_TREE = _ast.PyCF_ONLY_AST
# Descriptors of ours are kept above those that people close in bulk.
DESCRIPTOR_MIN = 200

REPR_CHARS_MAX = 4096
DOC_CHARS_MAX = 4096
SOURCE_CHARS_MAX = 16384
MESSAGE_CHARS_MAX = 4096
TRACEBACK_CHARS_MAX = 16384
NAME_CHARS_MAX = 256
MEMBERS_MAX = 256
GLOBALS_MAX = 1024
COMPLETIONS_MAX = 256
SOURCES_MAX = 1024

HELPER_FILE = "<rondo>"

class InvalidArguments(Exception):
    """What was asked for makes no sense."""

class State:
    """What changes. `armed` says that the user's code runs, which an interrupt may end."""

    armed = False
    forked = False
    count = 0
    flags = FLAG_AWAIT
    loop = None
    last_exception = None
    sources = {}

def stdlib(name):
    """Imports a module of the standard library, whatever lies in the working directory."""
    known = sys.modules.get(name)
    if known is not None:
        return known
    kept = sys.path
    sys.path = [entry for entry in kept if entry not in ("", os.getcwd())]
    try:
        return __import__(name)
    finally:
        sys.path = kept

def own_descriptor(descriptor):
    """Duplicates a descriptor to a high number that no program the user starts inherits."""
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, DESCRIPTOR_MIN)
    except (OSError, ValueError):
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
