# Looks that run nobody's code. What is stored is told, by functions of the interpreter that are
# written in C and that classes cannot replace; what only code could tell is refused. So nothing here
# uses an attribute, an operator, `len`, `isinstance`, `in`, a hash or a loop on a value that is not
# exactly of a type of the interpreter's own. Nothing is imported, compiled or formatted by modules.

REPR_NODES_MAX = 20_000
REPR_DEPTH_MAX = 32
REPR_FIELDS_DEPTH_MAX = 3
# What is read of one long text, in characters.
REPR_TEXT_MAX = 1 << 20
# As much of it costs what a value does.
TEXT_PER_NODE = 64
INT_BITS_MAX = 10_000
FLAG_HEAP_TYPE = 1 << 9


def reader(kind, name):
    """Returns the function with which the interpreter itself reads an attribute."""
    return kind.__dict__[name].__get__


class_flags = reader(type, "__flags__")
class_dict = reader(type, "__dict__")
class_mro = reader(type, "__mro__")
module_dict = reader(types.ModuleType, "__dict__")
getset_class = reader(types.GetSetDescriptorType, "__objclass__")
getset_name = reader(types.GetSetDescriptorType, "__name__")
static_function = reader(staticmethod, "__func__")
class_function = reader(classmethod, "__func__")
exception_args = reader(BaseException, "args")

# Attributes that C code computes from what is stored, without asking any object.
COMPUTED = (
    (int, ("real", "imag", "numerator", "denominator")),
    (float, ("real", "imag")),
    (BaseException, ("args", "__traceback__", "__context__", "__cause__")),
    (types.FunctionType, ("__code__", "__defaults__", "__kwdefaults__", "__name__", "__qualname__")),
    (types.BuiltinFunctionType, ("__name__", "__doc__", "__self__")),
    (types.MethodDescriptorType, ("__doc__",)),
    (types.WrapperDescriptorType, ("__doc__",)),
    (types.TracebackType, ("tb_next",)),
    (type, ("__name__", "__qualname__", "__bases__")),
)
DATES = ("datetime.date", "datetime.datetime", "datetime.time", "datetime.timedelta")
DATE_PARTS = ("year", "month", "day", "hour", "minute", "second", "microsecond", "tzinfo", "days", "seconds", "microseconds")


class NotStored(Exception):
    """What is looked for is not there, or not without running code: the type's name and a message."""


def is_a(value, wanted):
    """Says what `isinstance` would, which asks a value for its `__class__`."""
    return is_kind(type(value), wanted)


def is_kind(kind, wanted):
    for one in class_mro(kind):
        if one is wanted:
            return True
    return False


def pairs(mapping):
    return mapping.items() if type(mapping) is types.MappingProxyType else dict.items(mapping)


def find(mapping, wanted):
    """Returns the value of a name in a tuple; a hash table would ask keys whether they are equal."""
    for name, value in pairs(mapping):
        if type(name) is str and name == wanted:
            return (value,)
    return None


def in_class(kind, name):
    for one in class_mro(kind):
        found = find(class_dict(one), name)
        if found is not None:
            return found
    return None


def instance_dict(value):
    """Returns the dictionary in which a value keeps its attributes, or an empty one."""
    if is_a(value, types.ModuleType):
        return module_dict(value)
    for one in class_mro(type(value)):
        found = find(class_dict(one), "__dict__")
        if found is not None and type(found[0]) is types.GetSetDescriptorType:
            if getset_class(found[0]) is one:
                kept = types.GetSetDescriptorType.__get__(found[0], value)
                return kept if is_a(kept, dict) else {}
    return {}


def attribute(value, name):
    """Returns an attribute as it is stored."""
    kind = type(value)
    if name == "__class__":
        return kind
    is_class = is_kind(kind, type)
    if name == "__dict__":
        return class_dict(value) if is_class else instance_dict(value)
    own = in_class(value, name) if is_class else find(instance_dict(value), name)
    if is_class and own is not None and name in ("__doc__", "__module__"):
        return own[0]
    shared = in_class(kind, name)
    if shared is not None and (own is None or in_class(type(shared[0]), "__set__") is not None):
        return bound(shared[0], name, kind, value, False)
    if own is None:
        raise not_there(kind, name)
    return bound(own[0], name, value, None, True) if is_class else own[0]


def not_there(kind, name):
    return NotStored("AttributeError", "%s: no attribute `%s` is stored" % (kind_name(kind), name))


def bound(found, name, owner, value, is_of_class):
    """Returns what an attribute of a class is for its instance, or for the class itself."""
    its = type(found)
    if its is staticmethod:
        return static_function(found)
    if its is classmethod:
        return types.MethodType(class_function(found), owner)
    if its is types.ClassMethodDescriptorType:
        return its.__get__(found, None, owner)
    if in_class(its, "__get__") is None:
        return found
    if is_of_class:
        kept = (types.FunctionType, property, types.MethodDescriptorType, types.WrapperDescriptorType)
        if any_is(kept + (types.MemberDescriptorType, types.GetSetDescriptorType), its):
            return found
    elif its is types.FunctionType:
        return types.MethodType(found, value)
    elif its is types.MethodDescriptorType or its is types.WrapperDescriptorType:
        return its.__get__(found, value, owner)
    elif its is types.MemberDescriptorType:
        try:
            return its.__get__(found, value)
        except AttributeError:
            raise not_there(owner, name)
    elif its is types.GetSetDescriptorType and is_computed(found):
        return its.__get__(found, value)
    message = "%s: `%s` is computed by code, and a look runs none" % (kind_name(owner), name)
    raise NotStored("AttributeError", message)


def any_is(kinds, wanted):
    for kind in kinds:
        if kind is wanted:
            return True
    return False


def is_computed(descriptor):
    kind, name = getset_class(descriptor), getset_name(descriptor)
    for known, names in COMPUTED:
        if known is kind:
            return name in names
    return is_date(kind) and name in DATE_PARTS


def is_date(kind):
    # A class of Python code may call itself anything, but is never static.
    return not class_flags(kind) & FLAG_HEAP_TYPE and class_module(kind) + "." + class_name(kind) in DATES


def item(value, key):
    """Returns an item of the containers whose items are stored."""
    kind = type(value)
    if is_kind(kind, dict) and type(key) is not slice:
        for known, kept in dict.items(value):
            if type(known) is type(key) and known == key:
                return kept
        raise NotStored("KeyError", repr(key))
    for known in (list, tuple, str, bytes):
        if is_kind(kind, known) and (type(key) is int or type(key) is slice):
            try:
                return known.__getitem__(value, key)
            except IndexError:
                raise NotStored("IndexError", "%d is out of range" % key)
    message = "%s: its items are computed by code, and a look runs none" % kind_name(kind)
    raise NotStored("TypeError", message)


def follow(path):
    """Returns the value at the end of a path: a name or a constant, then attributes and items."""
    value = None
    for step, what in path:
        if step == "name":
            found = find(NAMESPACE, what) or find(user_builtins.__dict__, what)
            if found is None:
                raise NotStored("NameError", "name '%s' is not defined" % what)
            value = found[0]
        elif step == "attribute":
            value = attribute(value, what)
        elif step == "item":
            value = item(value, what)
        elif step == "slice":
            value = item(value, slice(*what))
        else:
            value = what
    return value


def kind_name(kind):
    return exact(class_name(kind))[:NAME_CHARS_MAX]


def kind_module(kind):
    if not class_flags(kind) & FLAG_HEAP_TYPE:
        return class_module(kind)
    found = find(class_dict(kind), "__module__")
    is_text = found is not None and is_a(found[0], str)
    return exact(found[0])[:NAME_CHARS_MAX] if is_text else "unknown"


def kind_qualified(kind):
    return kind_module(kind) + "." + exact(class_qualname(kind))[:NAME_CHARS_MAX]


class Teller:
    """Writes the `repr` of values: the interpreter's own for its own types, and for all others what
    they store."""

    def __init__(self):
        self.parts, self.length, self.kept = [], 0, 0
        self.nodes, self.open = REPR_NODES_MAX, []
        self.is_cut = False

    def text(self):
        return "".join(self.parts)[:REPR_CHARS_MAX]

    def put(self, text):
        self.length += len(text)
        if self.kept < REPR_CHARS_MAX:
            self.parts.append(text)
            self.kept += len(text)

    def leave_out(self):
        self.is_cut = True
        self.put("...")

    def tell(self, value):
        self.nodes -= 1
        if self.nodes < 0 or len(self.open) >= REPR_DEPTH_MAX or id(value) in self.open:
            return self.leave_out()
        kind = type(value)
        # By address: a class may say that it equals another.
        known = TELLERS.get(id(kind))
        self.open.append(id(value))
        if known is not None:
            known(self, value)
        elif is_kind(kind, type):
            self.put("<class '%s'>" % kind_qualified(value))
        elif is_date(kind) and not is_zoned(value):
            self.put(kind.__repr__(value))
        else:
            self.tell_object(value, kind)
        self.open.pop()

    def tell_object(self, value, kind):
        self.put("<%s object" % kind_qualified(kind))
        colon = ": "
        for one in class_mro(kind):
            if TELLERS.get(id(one)) is not None:
                self.put(colon)
                TELLERS[id(one)](self, value)
                colon = ", "
                break
        if is_kind(kind, BaseException):
            self.put(colon)
            self.tell(exception_args(value))
            colon = ", "
        if len(self.open) <= REPR_FIELDS_DEPTH_MAX:
            for name, field in fields(value, kind):
                if self.nodes < 0:
                    break
                self.put("%s%s=" % (colon, name[:NAME_CHARS_MAX]))
                self.tell(field)
                colon = ", "
        self.put(">")

    def tell_text(self, value):
        text = exact(value)
        self.nodes -= min(len(text), REPR_TEXT_MAX) // TEXT_PER_NODE
        self.put(str.__repr__(text[:REPR_TEXT_MAX]))
        if len(text) > REPR_TEXT_MAX:
            self.leave_out()

    def tell_bytes(self, value):
        for known in (bytes, bytearray):
            if is_a(value, known):
                self.nodes -= min(known.__len__(value), REPR_TEXT_MAX) // TEXT_PER_NODE
                self.put(known.__repr__(known.__getitem__(value, slice(0, REPR_TEXT_MAX))))
                if known.__len__(value) > REPR_TEXT_MAX:
                    self.leave_out()

    def tell_int(self, value):
        bits = int.bit_length(value)
        if bits > INT_BITS_MAX:
            return self.put("<int of %d bits>" % bits)
        self.put(int.__repr__(value))

    def tell_all(self, opening, items, closing):
        self.put(opening)
        separator = ""
        for one in items:
            self.put(separator)
            separator = ", "
            if self.nodes < 0:
                self.leave_out()
                break
            self.tell(one)
        self.put(closing)

    def tell_list(self, value):
        self.tell_all("[", list.__iter__(value), "]")

    def tell_tuple(self, value):
        self.tell_all("(", tuple.__iter__(value), ",)" if tuple.__len__(value) == 1 else ")")

    def tell_set(self, value):
        count = set.__len__(value)
        self.tell_all("{" if count else "set(", set.__iter__(value), "}" if count else ")")

    def tell_frozenset(self, value):
        count = frozenset.__len__(value)
        opening, closing = ("frozenset({", "})") if count else ("frozenset(", ")")
        self.tell_all(opening, frozenset.__iter__(value), closing)

    def tell_dict(self, value):
        self.tell_pairs("{", dict.items(value), "}")

    def tell_proxy(self, value):
        # It may stand before a mapping of the user's own.
        self.put("<mappingproxy>")

    def tell_pairs(self, opening, items, closing):
        self.put(opening)
        separator = ""
        for name, one in items:
            self.put(separator)
            separator = ", "
            if self.nodes < 0:
                self.leave_out()
                break
            self.tell(name)
            self.put(": ")
            self.tell(one)
        self.put(closing)

    def tell_range(self, value):
        self.tell_parts("range", (value.start, value.stop, value.step))

    def tell_slice(self, value):
        self.tell_parts("slice", (value.start, value.stop, value.step))

    def tell_parts(self, name, parts):
        self.put(name)
        self.tell_all("(", parts, ")")

    def tell_function(self, value):
        self.put("<function %s>" % exact(value.__qualname__)[:NAME_CHARS_MAX])

    def tell_builtin(self, value):
        self.put("<built-in function %s>" % value.__name__)

    def tell_method(self, value):
        self.put("<bound method ")
        self.tell(value.__func__)
        self.put(" of <%s object>>" % kind_qualified(type(value.__self__)))

    def tell_module(self, value):
        found = find(module_dict(value), "__name__")
        name = exact(found[0]) if found is not None and is_a(found[0], str) else "?"
        self.put("<module '%s'>" % name[:NAME_CHARS_MAX])


TELLERS = {
    id(str): Teller.tell_text,
    id(bytes): Teller.tell_bytes,
    id(bytearray): Teller.tell_bytes,
    id(bool): lambda teller, value: teller.put("True" if value else "False"),
    id(int): Teller.tell_int,
    id(float): lambda teller, value: teller.put(float.__repr__(value)),
    id(complex): lambda teller, value: teller.put(complex.__repr__(value)),
    id(type(None)): lambda teller, value: teller.put("None"),
    id(type(...)): lambda teller, value: teller.put("Ellipsis"),
    id(type(NotImplemented)): lambda teller, value: teller.put("NotImplemented"),
    id(list): Teller.tell_list,
    id(tuple): Teller.tell_tuple,
    id(set): Teller.tell_set,
    id(frozenset): Teller.tell_frozenset,
    id(dict): Teller.tell_dict,
    id(types.MappingProxyType): Teller.tell_proxy,
    id(range): Teller.tell_range,
    id(slice): Teller.tell_slice,
    id(types.FunctionType): Teller.tell_function,
    id(types.BuiltinFunctionType): Teller.tell_builtin,
    id(types.MethodType): Teller.tell_method,
    id(types.ModuleType): Teller.tell_module,
}


def is_zoned(value):
    """Says whether a date holds a time zone, which may be an object of the user's."""
    found = in_class(type(value), "tzinfo")
    return found is not None and types.GetSetDescriptorType.__get__(found[0], value) is not None


def fields(value, kind):
    """Yields the names and values that an object keeps for itself."""
    if not is_kind(kind, types.ModuleType):
        for name, field in dict.items(instance_dict(value)):
            if type(name) is str:
                yield name, field
    for one in class_mro(kind):
        if not class_flags(one) & FLAG_HEAP_TYPE:
            continue
        for name, slot in class_dict(one).items():
            if type(name) is str and type(slot) is types.MemberDescriptorType:
                try:
                    yield name, types.MemberDescriptorType.__get__(slot, value)
                except AttributeError:
                    # It was never assigned.
                    continue


def stored_names(value):
    """Returns the names of what is stored in a value and its classes, sorted."""
    kind, found = type(value), {}
    if is_kind(kind, type):
        places = [class_dict(one) for one in class_mro(value)]
    elif is_kind(kind, types.ModuleType):
        places = [module_dict(value)]
    else:
        places = [instance_dict(value)] + [class_dict(one) for one in class_mro(kind)]
    for place in places:
        for name, _ in pairs(place):
            if type(name) is str:
                found[name] = None
    return sorted(found)


def stored_type(value):
    kind = type(value)
    return {"name": kind_name(kind), "module": kind_module(kind), "qualified": kind_qualified(kind)}


def stored_repr(value):
    teller = Teller()
    teller.tell(value)
    is_short = teller.length <= REPR_CHARS_MAX and not teller.is_cut
    return {"repr": teller.text(), "truncated": not is_short, "original_len": teller.length}


def stored_members(value, hidden=True):
    return bounded_members([name for name in stored_names(value) if hidden or not name.startswith("_")])


def stored_doc(value):
    found = None
    if is_a(value, type):
        for one in class_mro(value):
            found = find(class_dict(one), "__doc__")
            if found is not None and found[0] is not None and (one is not object or value is object):
                break
            found = None
    else:
        try:
            doc = attribute(value, "__doc__")
            found = (doc,) if doc is not object.__doc__ else None
        except NotStored:
            found = None
    if found is None or not is_a(found[0], str):
        return {"doc": None, "truncated": False, "original_len": 0}
    return bounded("doc", cleaned(exact(found[0])), DOC_CHARS_MAX)


def cleaned(doc):
    """Takes the indentation off a docstring, as `inspect.cleandoc` does."""
    lines = doc.expandtabs().split("\n")
    margins = [len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()]
    margin = min(margins) if margins else 0
    lines = [lines[0].lstrip()] + [line[margin:] for line in lines[1:]]
    while lines and not lines[-1].strip():
        lines.pop()
    while lines and not lines[0].strip():
        lines.pop(0)
    return "\n".join(lines)


def function_of(value):
    """Returns the Python function that a value is, or is called by, and whether it is bound."""
    if type(value) is types.MethodType:
        return value.__func__, True
    if is_a(value, type):
        found = in_class(value, "__init__")
        return (found[0] if found is not None else None), True
    return value, False


def stored_signature(value):
    """Writes the parameters of a function of Python code, without annotations, which are code."""
    function, is_bound = function_of(value)
    if type(function) is not types.FunctionType:
        return None
    code, told = function.__code__, []
    positional, named = code.co_argcount, code.co_kwonlyargcount
    # These may be of a subclass, which must not be asked whether it is empty.
    defaults, by_name = function.__defaults__, function.__kwdefaults__
    defaults = () if defaults is None else defaults
    by_name = {} if by_name is None else by_name
    without = positional - tuple.__len__(defaults)
    names = tuple.__getitem__(code.co_varnames, slice(None))
    for at, name in enumerate(names[:positional]):
        default = (tuple.__getitem__(defaults, at - without),) if at >= without else None
        told.append(name + default_text(default))
        if at + 1 == code.co_posonlyargcount:
            told.append("/")
    if is_bound and told:
        del told[0]
    at = positional + named
    if code.co_flags & FLAG_VARARGS:
        told.append("*" + names[at])
        at += 1
    elif named:
        told.append("*")
    for name in names[positional : positional + named]:
        told.append(name + default_text(find(by_name, name)))
    if code.co_flags & FLAG_VARKEYWORDS:
        told.append("**" + names[at])
    return ("(%s)" % ", ".join(told))[:REPR_CHARS_MAX]


def default_text(default):
    return "" if default is None else "=" + stored_repr(default[0])["repr"]


def stored_source(value):
    """Finds the code of a function or a class of a cell."""
    function, _ = (value, False) if is_a(value, type) else function_of(value)
    found = None
    if type(function) is types.FunctionType:
        found = cell_function(function.__code__)
    elif type(function) is not types.BuiltinFunctionType:
        found = class_source(function)
    if found is None:
        return {"source": None, "truncated": False, "original_len": 0}
    return bounded("source", found, SOURCE_CHARS_MAX)


def cell_function(code):
    file = exact(code.co_filename)
    for name, first, last in State.definitions.get(file, ()):
        if first == code.co_firstlineno and name == exact(code.co_name):
            return source_lines(file, first, last)
    return None


def stored_everything(value):
    return {
        "type": stored_type(value),
        "repr": stored_repr(value),
        "doc": stored_doc(value),
        "members": stored_members(value, hidden=False),
        "signature": stored_signature(value),
        "source": stored_source(value),
    }


def stored_globals(all=False):
    found = []
    for name, value in dict.items(NAMESPACE):
        if type(name) is not str or name == "__builtins__":
            continue
        if all or not (name.startswith("_") or is_a(value, types.ModuleType)):
            found.append({"name": name[:NAME_CHARS_MAX], "type_name": kind_name(type(value))})
    return {"globals": found[-GLOBALS_MAX:]}


def stored_attributes(owner):
    """Returns the names of what the value of a dotted name stores."""
    first, *rest = owner.split(".")
    path = [("name", first)] + [("attribute", name) for name in rest]
    try:
        return stored_names(follow(path))
    except NotStored:
        return []
