# The user's namespace, and code run in it.

MAIN = types.ModuleType("__main__")
MAIN.__builtins__ = user_builtins
NAMESPACE = MAIN.__dict__

future = __import__("__future__")
FUTURES = 0
for _name in future.all_feature_names:
    FUTURES |= getattr(future, _name).compiler_flag


def remember(kind, source):
    """Gives a source a name, under which tracebacks and `inspect` find its lines."""
    State.count += 1
    name = "<%s %d>" % (kind, State.count)
    State.sources[name] = source
    # The last line has an end too, or tracebacks point beside what failed in it.
    lines = (source.rstrip("\n") + "\n").splitlines(True)
    linecache.cache[name] = (len(source), None, lines, name)
    if len(State.sources) > SOURCES_MAX:
        oldest = next(iter(State.sources))
        del State.sources[oldest]
        State.definitions.pop(oldest, None)
        linecache.cache.pop(oldest, None)
    return name


def compiled(tree, name, mode):
    code = compile(tree, name, mode, State.flags, True)
    # `from __future__ import annotations` holds for the cells that follow too.
    State.flags |= code.co_flags & FUTURES
    return code


def run(code):
    value = eval(code, NAMESPACE)
    return awaited(value) if code.co_flags & FLAG_COROUTINE else value


def awaited(coroutine):
    asyncio = stdlib("asyncio")
    if State.loop is None or State.loop.is_closed():
        State.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(State.loop)
    task = State.loop.create_task(coroutine)
    try:
        return State.loop.run_until_complete(task)
    except BaseException:
        if not task.done():
            task.cancel()
            State.loop.run_until_complete(asyncio.wait([task]))
        raise


def evaluate(source):
    """Evaluates one expression, whatever it does."""
    source = source.strip()
    name = remember("expression", source)
    tree = compile(source, name, "eval", FLAG_TREE | State.flags, True)
    return run(compiled(tree, name, "eval"))


DEFINITIONS = (_ast.FunctionDef, _ast.AsyncFunctionDef, _ast.ClassDef)
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def definitions(tree):
    """Returns where the functions and classes of a cell stand: name, first and last line."""
    found, waiting = [], [tree]
    while waiting and len(found) < DEFINITIONS_MAX:
        node = waiting.pop()
        if isinstance(node, DEFINITIONS):
            first = min([node.lineno] + [it.lineno for it in node.decorator_list])
            found.append((node.name, first, node.end_lineno))
        for block in BLOCKS:
            waiting.extend(getattr(node, block, ()))
    return found


def source_lines(name, first, last):
    return "\n".join(State.sources[name].splitlines()[first - 1 : last]) + "\n"


# Holds the value of a cell's last expression for a moment.
VALUE_NAME = "__cell_value__"


def execute(source):
    """Runs a cell; returns the value of its last expression, if it ends with one.

    That becomes an assignment, and not code of its own: where one part of a cell awaits, all of it
    runs within the loop.
    """
    name = remember("cell", source)
    tree = compile(source, name, "exec", FLAG_TREE | State.flags, True)
    State.definitions[name] = definitions(tree)
    if tree.body and type(tree.body[-1]) is _ast.Expr:
        last = tree.body[-1]
        place = {at: getattr(last, at) for at in last._attributes}
        target = _ast.Name(VALUE_NAME, _ast.Store(), **place)
        tree.body[-1] = _ast.Assign([target], last.value, **place)
    try:
        run(compiled(tree, name, "exec"))
    finally:
        value = NAMESPACE.pop(VALUE_NAME, None)
    if value is not None:
        user_builtins._ = value
    return value
