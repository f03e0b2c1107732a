/* A Python module with ten functions that take as long as their argument says. */
#include <Python.h>

#define NATIVE(number)                                                                           \
    __attribute__((noinline)) static PyObject *n##number(PyObject *self, PyObject *rounds) {     \
        volatile unsigned long sum = 0;                                                          \
        long count = PyLong_AsLong(rounds);                                                      \
        for (long i = 0; i < count; i++)                                                         \
            sum += i * (number + 3);                                                             \
        return PyLong_FromUnsignedLong(sum & 7);                                                 \
    }
#define METHOD(number) {"n" #number, n##number, METH_O, NULL}

NATIVE(0)
NATIVE(1)
NATIVE(2)
NATIVE(3)
NATIVE(4)
NATIVE(5)
NATIVE(6)
NATIVE(7)
NATIVE(8)
NATIVE(9)

static PyMethodDef methods[] = {
    METHOD(0), METHOD(1), METHOD(2), METHOD(3), METHOD(4),         METHOD(5),
    METHOD(6), METHOD(7), METHOD(8), METHOD(9), {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "pairs", NULL, -1, methods};

PyMODINIT_FUNC PyInit_pairs(void) {
    return PyModule_Create(&definition);
}
