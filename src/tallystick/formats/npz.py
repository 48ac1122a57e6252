"""Read the headers of NumPy's ``.npz``: a zip archive with one array in each member."""

from __future__ import annotations

import math
import re
from io import BufferedReader

from tallystick.core.budget import current
from tallystick.core.dtypes import BITS
from tallystick.errors import BadInput, quoted
from tallystick.files import zips
from tallystick.files.local import OpenFile, here
from tallystick.formats.weights_file import NOWHERE, Header, StoredTensor, WeightsFile, check_shape

KIND = "npz"
LONGEST_HEADER = 10_000  # bytes: numpy's own limit

_MAGIC = b"\x93NUMPY"
_ENDING = ".npy"
_STEPS = 40  # for an array: find, inflate and read its header
_START = 12  # bytes that hold the magic number, version and header length, in any version

# The Python dictionary as numpy writes it, and nothing else.
_HEADER = re.compile(
    r"\{'descr': '([<>|=])([a-zA-Z])([0-9]{1,3})', 'fortran_order': (True|False),"
    r" 'shape': \(((?:[0-9]{1,19}(?:, [0-9]{1,19})*,?)?)\), \} *\n"
)
_OBJECTS = re.compile(r"\{'descr': '\|?O8?'")
_KINDS = {"f": "float", "i": "int", "u": "uint"}
_WORDS = {"b1": "bool", "c8": "complex64", "c16": "complex128", "V2": "bfloat16"}


def sniff(file: OpenFile) -> bool:
    """Return whether a file begins like a zip archive; torch's begin alike but have other names."""
    return file.start.startswith(zips.MAGIC)


def read(file: OpenFile) -> WeightsFile:
    """Read the arrays of an archive by their headers.

    numpy has no bfloat16. JAX's ml_dtypes saves it as raw values of two bytes (``V2``). These are
    read as bfloat16, with a note.

    Raises:
        BadInput: if it is not such an archive, or holds arrays of objects, which are pickles.
    """
    path = here(file.path)
    try:
        members = zips.members(file.stream, file.size)
        odd = next((name for name in members if not name.endswith(_ENDING)), None)
        if odd is not None:
            raise BadInput(
                f"its member {quoted(odd)} is not an array: expected names that end in {_ENDING}", code="malformed"
            )
        current().step(_STEPS * len(members))
        tensors = [_tensor(file.stream, member) for member in members.values()]
    except BadInput as error:
        raise BadInput(f"{path} cannot be read: {error}", code=error.code) from None
    if not tensors:
        raise BadInput(f"{path} holds no arrays", code="malformed")
    raw = sum(tensor.dtype == "bfloat16" for tensor in tensors)
    notes = (f"{raw} untyped two-byte arrays are read as bfloat16, which JAX saves so",) if raw else ()
    return WeightsFile(KIND, [(path, Header(tensors, {}))], notes=notes)


def _tensor(file: BufferedReader, member: zips.Member) -> StoredTensor:
    """Read an array's header."""
    name = member.name.removesuffix(_ENDING)
    what = f"the array {quoted(name)}"
    start = zips.start_of(file, member, _START + LONGEST_HEADER)
    version = start[6:7]
    width = 2 if version == b"\x01" else 4
    if len(start) < _START or not start.startswith(_MAGIC) or version not in (b"\x01", b"\x02", b"\x03"):
        raise BadInput(f"{what} does not begin with numpy's magic bytes", code="malformed")
    length = int.from_bytes(start[8 : 8 + width], "little")
    data = 8 + width + length
    text = start[8 + width : data].decode("latin-1")
    if length > LONGEST_HEADER or len(text) < length:
        raise BadInput(
            f"{what} has a header of {length:,} bytes, more than the file has or numpy allows", code="malformed"
        )
    if _OBJECTS.match(text):
        raise BadInput(f"{what} holds pickled Python objects, which were not run", code="unsafe")
    found = _HEADER.fullmatch(text)
    if found is None:
        raise BadInput(f"{what} does not have the header of a plain array: {quoted(text)}", code="malformed")
    order, kind, bytes_, fortran, sizes = found.groups()
    dtype = _WORDS.get(kind + bytes_) or f"{_KINDS.get(kind, kind)}{8 * int(bytes_)}"
    if dtype not in BITS:
        raise BadInput(f"{what} has the dtype {order}{kind}{bytes_}, which weights never have", code="unsupported")
    shape = tuple(int(size) for size in sizes.split(",") if size.strip())
    try:
        check_shape(shape)
    except BadInput as error:
        raise BadInput(f"{what} has {error}", code=error.code) from None
    needed = math.prod(shape) * BITS[dtype] // 8
    if data + needed != member.size:
        raise BadInput(
            f"{what} of shape {shape} and dtype {dtype} needs {needed:,} bytes, but its member has"
            f" {member.size - data:,}",
            code="malformed",
        )
    if member.method != zips.STORED or fortran == "True" or order == ">":
        return StoredTensor(name, dtype, shape, NOWHERE, NOWHERE)
    place = zips.place_of(file, member) + data
    return StoredTensor(name, dtype, shape, place, place + needed)
