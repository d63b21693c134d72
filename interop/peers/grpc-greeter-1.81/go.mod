module sallyport/interop/peers/grpc-greeter-1.81

go 1.26.0

require (
	google.golang.org/grpc v1.81.1
	google.golang.org/grpc/examples v0.0.0-20260825154716-030ee8becb20
)
