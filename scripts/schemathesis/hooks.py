"""Changes to what Schemathesis generates."""

import schemathesis


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    """JSON Schema counts 7.0 among the integers; a path writes it as 7."""
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in (path_parameters or {}).items()
    }
