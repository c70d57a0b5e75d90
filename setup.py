"""What setup.cfg cannot say: the two compiled files. Without a compiler they are left out, and pure Python is used."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "kafka2011.wire._walk",
            ["kafka2011/wire/_walk.c"],
            extra_compile_args=["-O3"],
            py_limited_api=True,
            optional=True,
        ),
        Extension(
            "since2011.wire._records",
            ["since2011/wire/_records.c"],
            extra_compile_args=["-O3"],
            py_limited_api=True,
            optional=True,
        ),
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
