# For a prompt at which a person types.


def is_complete(code):
    """Says whether a cell can be run as it is: `complete`, `incomplete` or `invalid`."""
    compiler = codeop.CommandCompiler()
    compiler.compiler.flags |= State.flags
    try:
        whole = compiler(code, "<input>", "exec")
    except (SyntaxError, ValueError, OverflowError):
        return {"state": "invalid"}
    if whole is None:
        return {"state": "incomplete"}
    # A block may go on as long as no empty line ends it.
    lines = code.split("\n")
    in_block = len(lines) > 1 and lines[-1][:1].isspace() and lines[-1].strip()
    return {"state": "incomplete" if in_block else "complete"}


def complete(text):
    """Names that the end of a text may become: globals, builtins, keywords, or attributes."""
    start = len(text)
    while start and (text[start - 1].isalnum() or text[start - 1] in "_."):
        start -= 1
    owner, dot, begun = text[start:].rpartition(".")
    if dot:
        names = stored_attributes(owner)
    else:
        names = list(NAMESPACE) + list(user_builtins.__dict__) + kwlist
    fitting = {name for name in names if type(name) is str and name.startswith(begun)}
    shown = [name for name in fitting if begun.startswith("_") or not name.startswith("_")]
    found = [owner + dot + name for name in sorted(shown)]
    return {"names": found[:COMPLETIONS_MAX], "truncated": len(found) > COMPLETIONS_MAX}
