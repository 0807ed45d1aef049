# lit: dialect, pass and phase tests. Run one: lit-22 -v build/release/test --filter fuse-epilogues
import os

import lit.formats

config.name = "dspark"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = config.dspark_test_build
config.excludes = ["e2e", "fuzz", "kernels", "runtime", "frontends"]
config.substitutions.append(("%dspark-opt", config.dspark_bin + "/dspark-opt"))
config.substitutions.append(("%FileCheck", config.filecheck + " --dump-input-context 20"))
