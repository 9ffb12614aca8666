import Connections

extension ServerConfiguration {
    var session: ServerSessionLimits {
        ServerSessionLimits(
            settings: Settings(
                frameBytesMax: max(frameBytesMax, Settings.frameBytesFloor), messageBytesMax: messageBytesMax,
                streamsMax: streamsPerConnectionMax, initialWindowBytes: min(initialWindowBytes, FlowWindow.max),
                idleMilliseconds: UInt32(clamping: idleMilliseconds)),
            assemblyBytesMax: assemblyBytesMax)
    }
}
