# The helper inside the interpreter. Its files are joined in one namespace of its own, with builtins
# of its own: whatever the user's code does to `builtins`, `sys` or a module, this goes on. Only the
# standard library is used, and of that, where the user's code has run, only what is written in C.
#
# The bootstrap has taken the working directory off `sys.path`, so that a file of the user's named
# `json.py` is not taken for the standard library's; `stdlib` does the same later. What needs to be
# there before the user's code runs is imported here.

import os
import sys


current_directory, change_directory, SEPARATOR = os.getcwd, os.chdir, os.sep
LIBRARY = os.path.dirname(os.path.realpath(os.__file__)) + os.sep


def is_own(place, here):
    """Says whether modules found there are the interpreter's, and not those of the directory."""
    # All places lie in the root.
    is_outside = not here or not place.startswith(here + SEPARATOR)
    return is_outside or place.startswith(LIBRARY)


def own_paths(here):
    """Returns the entries of the path that are the interpreter's, as seen from a directory."""
    here = here.rstrip(SEPARATOR)
    return [entry for entry, place in PLACES if is_own(place, here)]


# A package that is installed to be edited may have put the directory itself on the path.
FULL_PATH = list(sys.path)
PLACES = [(entry, os.path.realpath(entry) + os.sep) for entry in FULL_PATH]
STDLIB_PATH = sys.path[:] = own_paths(current_directory())

import _ast
import _signal
import ast  # `traceback` imports it when it first needs it.
import builtins as user_builtins
import codeop
import fcntl
import linecache
import traceback
import types
from json.decoder import JSONDecoder
from json.encoder import encode_basestring as quote
from keyword import kwlist

FLAG_VARARGS, FLAG_VARKEYWORDS = 0x04, 0x08  # `inspect.CO_VARARGS`, `CO_VARKEYWORDS`
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
DEFINITIONS_MAX = 1024

HELPER_FILE = "<rondo>"

class State:
    """What changes. `armed` says that the user's code runs, which an interrupt may end."""

    armed = False
    forked = False
    count = 0
    flags = FLAG_AWAIT
    loop = None
    last_exception = None
    sources = {}
    # Of each source, the functions and classes: name, first and last line.
    definitions = {}

def stdlib(name):
    """Imports a module of the standard library, whatever lies in the working directory."""
    known = sys.modules.get(name)
    if known is not None:
        return known
    kept = sys.path
    sys.path = list(STDLIB_PATH)
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
