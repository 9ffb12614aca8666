"""Which tests of the SDK are not run or may fail, and why. The page docs/compatibility.md has what stands here."""

# Files of Firestore/Swift/Tests/Integration that are not built.
PIPELINES = "uses parts of the pipeline API that this library does not have"
EXCLUDED = {
    "PipelineApiTests.swift": PIPELINES,
    "PipelineSubqueryTests.swift": PIPELINES,
    "PipelineTests.swift": PIPELINES,
    "QueryToPipelineTests.swift": PIPELINES,
    "SearchIntegrationTests.swift": PIPELINES,
}

# Tests that may fail: the class and the name.
FAILURES = {}
