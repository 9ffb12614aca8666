// gRPC C++ with the callback interface: the service of echo.proto.
// usage: grpc_echo PORT    serves on 127.0.0.1 without TLS until killed
#include "echo.grpc.pb.h"
#include <grpcpp/grpcpp.h>
#include <string>

class Service final : public bounds::Echo::CallbackService {
    grpc::ServerUnaryReactor *Say(grpc::CallbackServerContext *context, const bounds::EchoRequest *, bounds::EchoReply *reply) override {
        reply->set_payload(std::string(253, 'r'));
        auto *reactor = context->DefaultReactor();
        reactor->Finish(grpc::Status::OK);
        return reactor;
    }
};

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    Service service;
    grpc::ServerBuilder builder;
    builder.AddListeningPort(std::string("127.0.0.1:") + argv[1], grpc::InsecureServerCredentials());
    builder.RegisterService(&service);
    builder.BuildAndStart()->Wait();
}
