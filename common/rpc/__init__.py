"""gRPC over mutual TLS: channels, servers, authorisation and the error table."""
