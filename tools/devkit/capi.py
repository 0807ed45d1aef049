"""The C API (include/dspark/dspark.h) by ctypes, as far as tests and benchmarks need it."""

import ctypes
import functools

import ml_dtypes
import numpy as np

from .venv import BIN

DTYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_,
          10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64, 16: ml_dtypes.bfloat16}
CODES = {np.dtype(kind): code for code, kind in DTYPES.items()}


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int32),
                ("dims", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64))]


class TensorInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int32),
                ("dims", ctypes.POINTER(ctypes.c_int64)), ("dim_texts", ctypes.POINTER(ctypes.c_char_p))]


class Options(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("threads", ctypes.c_int32), ("memory_limit", ctypes.c_uint64),
                ("isa", ctypes.c_char_p), ("refuse_native_code", ctypes.c_int32), ("profile", ctypes.c_int32), ("adapt", ctypes.c_int32),
                ("devices", ctypes.POINTER(ctypes.c_char_p)), ("device_count", ctypes.c_size_t), ("learned", ctypes.c_char_p)]


class Failure(Exception):
    """A call that returned a status; the text is the library's own sentence."""


@functools.cache
def library():
    found = sorted(BIN.parent.rglob("libdspark.so"))
    if not found:
        raise SystemExit(f"no libdspark.so under {BIN.parent}: run tools/build first (or set DSPARK_BIN)")
    lib = ctypes.CDLL(str(found[0]))
    lib.dspark_last_error.restype = ctypes.c_char_p
    for name in ("dspark_plan_input_count", "dspark_plan_output_count"):
        getattr(lib, name).restype = ctypes.c_size_t
    return lib


def check(status):
    if status:
        raise Failure(library().dspark_last_error().decode(errors="replace"))


def lend(array):
    """(Tensor, what must stay alive) of a numpy array."""
    array = np.ascontiguousarray(array) if array.ndim else array
    dims = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
    return Tensor(array.ctypes.data, CODES[array.dtype], array.ndim, dims, None), (array, dims)


class Session:
    """An open plan and a session on it; a context manager."""

    def __init__(self, plan, threads=0, isa=None):
        lib, self.plan, self.session = library(), ctypes.c_void_p(), ctypes.c_void_p()
        check(lib.dspark_plan_open(str(plan).encode(), ctypes.byref(self.plan)))
        self.inputs = self.names("input")
        self.outputs = self.names("output")
        options = Options()
        lib.dspark_session_options_init(ctypes.byref(options))
        options.threads, options.isa = threads, isa.encode() if isa else None
        check(lib.dspark_session_create(self.plan, ctypes.byref(options), ctypes.byref(self.session)))

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        library().dspark_session_destroy(self.session)
        library().dspark_plan_close(self.plan)

    def names(self, kind):
        info, result = TensorInfo(), []
        for index in range(getattr(library(), f"dspark_plan_{kind}_count")(self.plan)):
            check(getattr(library(), f"dspark_plan_{kind}")(self.plan, ctypes.c_size_t(index), ctypes.byref(info)))
            result.append(info.name.decode())
        return result

    def caller(self, feeds):
        """A function without arguments that runs once on these arrays, with nothing in it but the call."""
        lent = [lend(np.asarray(feeds[name])) for name in self.inputs]
        tensors = (Tensor * len(lent))(*(tensor for tensor, _ in lent))
        run, count = library().dspark_session_run, ctypes.c_size_t(len(lent))

        def call(keep=lent):
            check(run(self.session, tensors, count, None, ctypes.c_size_t(0)))

        return call

    def run(self, feeds):
        """The outputs, copied, by name."""
        self.caller(feeds)()
        return {name: self.output(index) for index, name in enumerate(self.outputs)}

    def output(self, index):
        tensor = Tensor()
        check(library().dspark_session_output(self.session, ctypes.c_size_t(index), ctypes.byref(tensor)))
        kind, dims = np.dtype(DTYPES[tensor.dtype]), tensor.dims[: tensor.rank]
        size = int(np.prod(dims, dtype=np.int64)) * kind.itemsize
        return np.frombuffer(ctypes.string_at(tensor.data, size) if size else b"", kind).reshape(dims).copy()
