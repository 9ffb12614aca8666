import Connections

extension ServerConfiguration {
    var session: ServerSessionLimits {
        var limits = ServerSessionLimits(
            settings: Settings(
                frameBytesMax: max(frameBytesMax, Settings.frameBytesFloor), messageBytesMax: messageBytesMax,
                streamsMax: streamsPerConnectionMax, initialWindowBytes: min(initialWindowBytes, FlowWindow.max),
                idleMilliseconds: UInt32(clamping: idleMilliseconds), takesAfter: true),
            assemblyBytesMax: assemblyBytesMax)
        limits.keepsAuthorization = keepsAuthorization
        limits.credentialsMax = credentialsMax
        limits.credentialsPerSecond = credentialsPerSecond
        return limits
    }
}
