"""Names that a file of ``torch.save`` may hold besides the functions that make tensors.

`DTYPES`, `STORAGES` and `CONSTANTS` are exactly those that ``torch.load(weights_only=True)`` of
torch 2.13 allows. `OTHER_CLASSES` make other values. Torch loads only some of them unless the
user allows the class; here none is imported or called, so files that hold them can be counted.
"""

from __future__ import annotations

# Torch's dtypes, and the bits of an element in storage. Two quantised dtypes share bytes.
DTYPES = {
    "bool": 8, "uint8": 8, "int8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32, "int64": 64, "uint64": 64,
    "float16": 16, "bfloat16": 16, "float32": 32, "float64": 64, "complex32": 32, "complex64": 64, "complex128": 128,
    "float8_e4m3fn": 8, "float8_e5m2": 8, "float8_e8m0fnu": 8, "float8_e4m3fnuz": 8, "float8_e5m2fnuz": 8,
    "float4_e2m1fn_x2": 8, "bits8": 8, "bits16": 16, "bits1x8": 8, "bits2x4": 8, "bits4x2": 8,
    "qint8": 8, "quint8": 8, "qint32": 32, "quint4x2": 8, "quint2x4": 8,
    **{f"{sign}int{bits}": 8 for sign in ("", "u") for bits in range(1, 8)},
}  # fmt: skip
SHARED_BYTES = {"quint4x2": 4, "quint2x4": 2}  # bits of an element; each row begins with a new byte

# Class of storage -> dtype; uint8 if the class has no dtype.
STORAGES = {
    "Double": "float64", "Float": "float32", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64", "Int": "int32",
    "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool", "ComplexFloat": "complex64",
    "ComplexDouble": "complex128", "QInt8": "qint8", "QUInt8": "quint8", "QInt32": "qint32", "QUInt4x2": "quint4x2",
    "QUInt2x4": "quint2x4", "Untyped": "uint8",
}  # fmt: skip
_ON_DEVICES = [word for word in STORAGES if not word.startswith("Q") and word != "Untyped"]
STORAGE_CLASSES = (
    *(f"torch.{word}Storage" for word in STORAGES if word != "Untyped"),
    *(f"torch.cuda.{word}Storage" for word in _ON_DEVICES),
    *(f"torch.storage.{word}Storage" for word in STORAGES),
    "torch.UntypedStorage", "torch.cuda.UntypedStorage", "torch.storage.TypedStorage",
)  # fmt: skip

DEVICES = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy", "vulkan",
    "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip
LAYOUTS = ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "_mkldnn", "jagged")
CONSTANTS = (
    *(f"torch.per_{of}_{how}" for of in ("tensor", "channel") for how in ("affine", "symmetric")),
    "torch.per_channel_affine_float_qparams", "torch.Tensor",
)  # fmt: skip

# Tensor classes of torchao 0.18, and the classes of their attributes.
TORCHAO = (
    *(
        f"torchao.quantization.{word}Tensor"
        for word in (
            "Int8", "Float8", "Int4", "Int4TilePackedTo4d", "Int4PlainInt32", "Int4Preshuffled", "IntxUnpackedToInt8",
        )
    ),
    "torchao.prototype.mx_formats.nvfp4_tensor.NVFP4Tensor", "torchao.prototype.mx_formats.mx_tensor.MXTensor",
)  # fmt: skip
_BESIDE_TORCHAO = (
    *(
        f"torchao.quantization.{word}"
        for word in (
            "granularity.PerRow", "granularity.PerTensor", "granularity.PerGroup", "granularity.PerBlock",
            "quant_primitives.MappingType", "quantize_.common.kernel_preference.KernelPreference",
            "quantize_.workflows.int8.int8_tensor.QuantizeTensorToInt8Kwargs",
            "quantize_.workflows.float8.float8_tensor.QuantizeTensorToFloat8Kwargs",
        )
    ),
    "torchao.float8.inference.Float8MMConfig", "torchao.prototype.mx_formats.config.ScaleCalculationMode",
)  # fmt: skip

# Distributed tensors, and the classes of their placement. Torch allows these once the module is
# imported.
DTENSORS = ("torch.distributed.tensor.DTensor", "torch.distributed._tensor.api.DTensor")
_BESIDE_DTENSORS = (
    "torch.distributed._mesh_layout._FlatLayout", "torch.distributed._mesh_layout._MeshLayout",
    "torch.distributed.device_mesh.DeviceMesh",
    *(
        f"torch.distributed.tensor._dtensor_spec.{word}"
        for word in ("DTensorSpec", "TensorMeta", "ShardOrderEntry")
    ),
    *(
        f"torch.distributed.{module}.{word}"  # the second: as in torch 2.4
        for module in ("tensor.placement_types", "_tensor.placement_types")
        for word in ("Partial", "Replicate", "Shard", "_StridedShard")
    ),
    "torch.distributed._tensor.placement_types.DTensorSpec", "torch.distributed._tensor.placement_types.TensorMeta",
    "torch.distributed._tensor._dtensor_spec.DTensorSpec", "torch.distributed._tensor._dtensor_spec.TensorMeta",
)  # fmt: skip

# Nested tensors with the layout ``jagged``.
NESTED = "torch.nested._internal.nested_tensor.NestedTensor"

OTHER_CLASSES = (
    "torch.device", "torch._dynamo.decorators._DimRange", *_BESIDE_TORCHAO, *_BESIDE_DTENSORS,
    "_codecs.encode", "builtins.set", "builtins.complex", "builtins.bytearray",  # torch allows the names up to here
    "builtins.frozenset", "builtins.slice", "builtins.range", "argparse.Namespace", "numpy.dtype", "numpy.ndarray",
    "numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar", "numpy.core.multiarray._reconstruct",
    "numpy._core.multiarray._reconstruct", "datetime.datetime", "datetime.timedelta", "pathlib.Path", "pathlib.PosixPath",
    "pathlib.WindowsPath", "pathlib._local.Path", "pathlib._local.PosixPath", "pathlib._local.WindowsPath",
)  # fmt: skip
# Classes that are named but not called, such as the default factory of a `defaultdict`.
PLAIN_CLASSES = tuple(f"builtins.{word}" for word in ("int", "float", "dict", "list", "str", "bool", "tuple", "bytes"))
