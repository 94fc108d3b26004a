# Exceptions as data. Telling one may run the user's code, and fail itself.


def attempt(work, *arguments):
    """Runs what may run the user's code; returns its value, or what it raised, of any kind."""
    try:
        State.armed = True
        value = work(*arguments)
        State.armed = False
        return value, None
    except BaseException as error:
        State.armed = False
        return None, error


def describe_exception(error):
    """Returns type, message and traceback of an exception, whatever it is like."""
    name = type_name(type(error))
    message, broken = attempt(lambda: exact(str(error)))
    if broken is not None:
        message = "<%s whose text cannot be told>" % name
    text, broken = attempt(format_traceback, error)
    if broken is not None:
        text = plain_traceback(error, name, message)
    return {
        "exc_type": name,
        "message": both_ends(message, MESSAGE_CHARS_MAX),
        "traceback": both_ends(text, TRACEBACK_CHARS_MAX),
    }


def describe_failed_look(error):
    """Returns the same of a look that failed, by an exception of the interpreter's or of ours."""
    name, message = type(error).__name__, str(error)
    if type(error) is NotStored:
        name, message = error.args
    message = both_ends(message, MESSAGE_CHARS_MAX)
    text = "Traceback (most recent call last):\n%s: %s\n" % (name, message)
    return {"exc_type": name, "message": message, "traceback": text}


def headline(told):
    return told["exc_type"] + (": " + told["message"] if told["message"] else "")


def users_frames(trace):
    """Returns a traceback without the helper's own frames."""
    kept = []
    while trace is not None:
        if trace.tb_frame.f_code.co_filename != HELPER_FILE:
            kept.append(trace)
        trace = trace.tb_next
    told = None
    for at in reversed(kept):
        told = types.TracebackType(told, at.tb_frame, at.tb_lasti, at.tb_lineno)
    return told


# What `traceback` imports when it first needs it, in one version or the other.
TRACEBACK_MODULES = ("_colorize", "_suggestions", "unicodedata")


def format_traceback(error):
    for name in TRACEBACK_MODULES:
        try:
            stdlib(name)
        except ImportError:
            continue
    trace = users_frames(error.__traceback__)
    return exact("".join(traceback.format_exception(type(error), error, trace)))


def plain_traceback(error, name, message):
    """Tells where an exception came from where `traceback` cannot."""
    lines = ["Traceback (most recent call last):"]
    trace = users_frames(error.__traceback__)
    while trace is not None and len(lines) < 64:
        code = trace.tb_frame.f_code
        lines.append('  File "%s", line %d, in %s' % (code.co_filename, trace.tb_lineno, code.co_name))
        trace = trace.tb_next
    lines.append("%s: %s" % (name, message))
    return "\n".join(lines) + "\n"


def keep_exception(error):
    """Notes an exception as the last one, for us and for `pdb.pm()`."""
    told = describe_exception(error)
    State.last_exception = told
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    sys.last_exc = error
    return told
