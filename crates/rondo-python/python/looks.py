# The capabilities: what each takes and returns is its contract with the model.


def get_type(expr):
    return describe_type(evaluate(expr))


def get_repr(expr):
    return describe_repr(evaluate(expr))


def get_dir(expr):
    return describe_members(evaluate(expr))


def get_doc(expr):
    return describe_doc(evaluate(expr))


def get_last_exception():
    return {"exception": State.last_exception}


def inspect_value(expr):
    """Tells everything at once; a part that cannot be told says why."""
    value = evaluate(expr)
    parts = {
        "type": describe_type,
        "repr": describe_repr,
        "doc": describe_doc,
        "members": lambda value: describe_members(value, hidden=False),
        "signature": describe_signature,
        "source": describe_source,
    }
    told = {}
    for name, describe in parts.items():
        try:
            told[name] = describe(value)
        except Exception as error:
            told[name] = {"error": type_name(type(error))}
    return told


def eval_expr(expr):
    try:
        return {"value_repr": describe_repr(evaluate(expr))["repr"]}
    except Exception as error:
        keep_exception(error)
        raise


def run_cell(code):
    """Runs a cell. Its exception is part of the result."""
    value, error = attempt(execute, code)
    told = None
    if error is None and value is not None:
        told, error = attempt(describe_repr, value)
    leaves, _ = attempt(has_left, error)
    if leaves:
        attempt(say_code, error)
    return {
        "value_repr": told["repr"] if told else None,
        "truncated": told["truncated"] if told else False,
        "exception": keep_exception(error) if error is not None else None,
        "interrupted": isinstance(error, KeyboardInterrupt),
        "leaves": leaves is True,
    }
