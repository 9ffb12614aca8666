// nghttp2, and the header lists of answers that never change, which Swift could not lay out as constants.
#ifndef HEARTH_CNGHTTP2_SHIM_H
#define HEARTH_CNGHTTP2_SHIM_H

#include <nghttp2/nghttp2.h>

#define HEARTH_FIELD(name, value)                                                                                      \
    {(uint8_t *)(name), (uint8_t *)(value), sizeof(name) - 1, sizeof(value) - 1,                                       \
     NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE}

/// Queues the head of a gRPC answer; its messages are asked for through `read`, which gets `source`.
static inline int hearth_submit_grpc_head(
    nghttp2_session *session, int32_t stream, nghttp2_data_source_read_callback read, void *source) {
    static const nghttp2_nv fields[] = {
        HEARTH_FIELD(":status", "200"), HEARTH_FIELD("content-type", "application/grpc"),
        HEARTH_FIELD("grpc-accept-encoding", "identity,deflate,gzip")};
    nghttp2_data_provider provider = {.source = {.ptr = source}, .read_callback = read};
    return nghttp2_submit_response(session, stream, fields, 3, &provider);
}

/// Queues the trailers of a call that went well.
static inline int hearth_submit_grpc_ok(nghttp2_session *session, int32_t stream) {
    static const nghttp2_nv fields[] = {HEARTH_FIELD("grpc-status", "0")};
    return nghttp2_submit_trailer(session, stream, fields, 1);
}

#endif
