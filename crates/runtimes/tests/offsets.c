/* Prints where this version of CPython has the fields that frames are read from. */
#define Py_BUILD_CORE 1
#include <Python.h>
#include <stddef.h>
#include <stdio.h>

#if PY_VERSION_HEX >= 0x030b0000
#include "internal/pycore_code.h"
#include "internal/pycore_frame.h"
#else
#include <frameobject.h>
#endif
#if PY_VERSION_HEX >= 0x03090000
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#else
#include "internal/pycore_pystate.h"
#endif

#define FIELD(type, field) printf("%zu ", offsetof(type, field))

int main(void) {
    FIELD(_PyRuntimeState, interpreters.head);
    FIELD(PyInterpreterState, next);
#if PY_VERSION_HEX >= 0x030b0000
    FIELD(PyInterpreterState, threads.head);
    FIELD(PyThreadState, next);
    FIELD(PyThreadState, native_thread_id);
    FIELD(PyThreadState, cframe);
    FIELD(_PyCFrame, current_frame);
    FIELD(_PyCFrame, previous);
    FIELD(_PyInterpreterFrame, f_code);
    FIELD(_PyInterpreterFrame, previous);
    FIELD(_PyInterpreterFrame, prev_instr);
    FIELD(_PyInterpreterFrame, owner);
    FIELD(PyCodeObject, co_filename);
    FIELD(PyCodeObject, co_qualname);
    FIELD(PyCodeObject, co_linetable);
    FIELD(PyCodeObject, co_firstlineno);
    FIELD(PyCodeObject, co_code_adaptive);
#else
    FIELD(PyInterpreterState, tstate_head);
    FIELD(PyThreadState, next);
    FIELD(PyThreadState, thread_id);
    FIELD(_PyRuntimeState, main_thread);
    FIELD(PyThreadState, frame);
    FIELD(PyFrameObject, f_code);
    FIELD(PyFrameObject, f_back);
    FIELD(PyFrameObject, f_lasti);
    FIELD(PyCodeObject, co_filename);
    FIELD(PyCodeObject, co_name);
#if PY_VERSION_HEX >= 0x030a0000
    FIELD(PyCodeObject, co_linetable);
#else
    FIELD(PyCodeObject, co_lnotab);
#endif
    FIELD(PyCodeObject, co_firstlineno);
    FIELD(PyCodeObject, co_code);
#endif
    FIELD(PyASCIIObject, state);
    printf("%zu %zu\n", sizeof(PyASCIIObject), sizeof(PyCompactUnicodeObject));
    return 0;
}
