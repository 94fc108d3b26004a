# What can be told of a value, bounded. All that is named `describe_` may run the user's code.

class_name = type.__dict__["__name__"].__get__
class_qualname = type.__dict__["__qualname__"].__get__
class_module = type.__dict__["__module__"].__get__


def exact(text):
    """Returns a string as nothing but a string: a subclass may lie about its length."""
    return str.__str__(text)


def bounded(name, text, limit):
    return {name: text[:limit], "truncated": len(text) > limit, "original_len": len(text)}


def both_ends(text, limit):
    """Keeps head and tail of a text that is too long."""
    left_out = len(text) - limit
    if left_out <= 0:
        return text
    half = limit // 2
    return text[:half] + "\n[... %d characters left out ...]\n" % left_out + text[-half:]


def type_name(kind):
    return exact(class_name(kind))[:NAME_CHARS_MAX]


def describe_type(value):
    kind = type(value)
    module = class_module(kind)
    module = exact(module)[:NAME_CHARS_MAX] if isinstance(module, str) else "unknown"
    qualified = module + "." + exact(class_qualname(kind))[:NAME_CHARS_MAX]
    return {"name": type_name(kind), "module": module, "qualified": qualified}


def describe_repr(value):
    return bounded("repr", exact(repr(value)), REPR_CHARS_MAX)


def describe_members(value, hidden=True):
    names = [exact(name) for name in dir(value) if isinstance(name, str)]
    return bounded_members([name for name in names if hidden or not name.startswith("_")])


def bounded_members(names):
    kept = [name[:NAME_CHARS_MAX] for name in names[:MEMBERS_MAX]]
    return {"members": kept, "truncated": len(names) > MEMBERS_MAX, "original_len": len(names)}


def describe_doc(value):
    doc = stdlib("inspect").getdoc(value)
    if not isinstance(doc, str):
        return {"doc": None, "truncated": False, "original_len": 0}
    return bounded("doc", exact(doc), DOC_CHARS_MAX)


def describe_source(value):
    try:
        source = stdlib("inspect").getsource(value)
    except (OSError, TypeError):
        source = class_source(value)
    if not isinstance(source, str):
        return {"source": None, "truncated": False, "original_len": 0}
    return bounded("source", exact(source), SOURCE_CHARS_MAX)


def class_source(value):
    """Finds a class of a cell, which `inspect` looks for in a file; the newest cell counts."""
    kind = value if is_a(value, type) else type(value)
    if kind_module(kind) != "__main__":
        return None
    for file in reversed(list(State.definitions)):
        for name, first, last in State.definitions[file]:
            if name == kind_name(kind):
                return source_lines(file, first, last).rstrip("\n")
    return None


def describe_signature(value):
    if not callable(value):
        return None
    try:
        return exact(str(stdlib("inspect").signature(value)))[:REPR_CHARS_MAX]
    except (ValueError, TypeError):
        return None
