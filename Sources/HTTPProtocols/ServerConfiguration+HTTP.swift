import Connections

extension ServerConfiguration {
    var http1: HTTP1Limits {
        var limits = HTTP1Limits()
        limits.headBytesMax = min(http1HeadBytesMax, 32 << 10)
        limits.fieldsMax = http1FieldsMax
        limits.bodyBytesMax = Int(messageBytesMax)
        return limits
    }

    var http2: HTTP2Limits {
        let range = HTTP2Limits.frameBytesRange
        var limits = HTTP2Limits(
            streamsMax: streamsPerConnectionMax, messageBytesMax: Int(messageBytesMax),
            assemblyBytesMax: assemblyBytesMax,
            frameBytesMax: min(max(frameBytesMax, range.lowerBound), range.upperBound),
            streamWindowBytes: min(http2WindowBytes, HTTP2Limits.windowBytesMax),
            connectionWindowBytes: min(max(http2ConnectionWindowBytes, 65_535), HTTP2Limits.windowBytesMax),
            metadataBytesMax: metadataBytesMax, resetsMax: resetsMax, resetsPerSecond: resetsPerSecond,
            idleFramesMax: idleFramesMax, idleFramesPerSecond: idleFramesPerSecond, pauseBytes: outputPauseBytes,
            keptBackBytesMax: max(http2KeptBackBytesMax, outputPauseBytes),
            keepsAuthorization: keepsAuthorization, httpFieldsMax: http1FieldsMax)
        limits.onAgent = { [onEvent] agent in onEvent(.clientSeen(agent: agent)) }
        return limits
    }
}
