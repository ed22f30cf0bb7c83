# SPDX-License-Identifier: Apache-2.0
"""Messages and methods from the .proto files of src/catalog/grpc/proto, without a compiler of them.

The files are the contract that a user compiles: tests speak by them, not by the tables in wire.c.
"""
import re
from pathlib import Path

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

FOLDER = Path(__file__).resolve().parents[3] / "src/catalog/grpc/proto"
Field = descriptor_pb2.FieldDescriptorProto
SCALARS = {"string": Field.TYPE_STRING, "bytes": Field.TYPE_BYTES, "bool": Field.TYPE_BOOL, "int64": Field.TYPE_INT64,
           "int32": Field.TYPE_INT32}
FIELD = re.compile(r"^(repeated\s+)?(map<string,\s*string>|[\w.]+)\s+(\w+)\s*=\s*(\d+);$")
RPC = re.compile(r"^rpc\s+(\w+)\((stream\s+)?(\w+)\)\s+returns\s+\((stream\s+)?(\w+)\);$")


def add_map(message, field, name):
    entry = message.nested_type.add(name="".join(word.capitalize() for word in name.split("_")) + "Entry")
    entry.options.map_entry = True
    for number, key in enumerate(("key", "value"), 1):
        entry.field.add(name=key, number=number, type=Field.TYPE_STRING, label=Field.LABEL_OPTIONAL)
    field.label = Field.LABEL_REPEATED
    field.type_name = entry.name


def add_field(message, repeated, kind, name, number):
    field = message.field.add(name=name, number=int(number))
    field.label = Field.LABEL_REPEATED if repeated else Field.LABEL_OPTIONAL
    if kind.startswith("map<"):
        add_map(message, field, name)
    elif kind in SCALARS:
        field.type = SCALARS[kind]
    else:
        field.type_name = kind


def parse(path):
    """(FileDescriptorProto as a compiler makes it, {service: {method: (request, answer, streamed)}})"""
    file = descriptor_pb2.FileDescriptorProto(name=path.name, syntax="proto3")
    services, stack = {}, []
    for line in path.read_text().splitlines():
        line = line.split("//")[0].strip()
        top = stack[-1] if stack else None
        if line.startswith("package "):
            file.package = line[8:].rstrip(";")
        elif line.startswith("service "):
            stack.append(file.service.add(name=line.split()[1]))
            services[line.split()[1]] = {}
        elif line.startswith("message "):
            message = file.message_type.add(name=line.split()[1])
            if not line.endswith("{}"):
                stack.append(message)
        elif line.startswith("enum "):
            stack.append(top.enum_type.add(name=line.split()[1]))
        elif line == "}":
            stack.pop()
        elif match := RPC.match(line):
            name, asked_in_turn, request, streamed, answer = match.groups()
            top.method.add(name=name, input_type=request, output_type=answer, client_streaming=bool(asked_in_turn) or None,
                           server_streaming=bool(streamed) or None)
            services[top.name][name] = (request, answer, bool(streamed))
        elif isinstance(top, descriptor_pb2.EnumDescriptorProto) and line:
            name, number = line.rstrip(";").split("=")
            top.value.add(name=name.strip(), number=int(number))
        elif match := FIELD.match(line):
            add_field(top, *match.groups())
        else:
            assert not line or line.startswith("syntax"), f"{path.name}: {line}"
    resolve(file)
    return file, services


def resolve(file):
    """Names of types become whole ones, and say whether it is a message or an enum."""
    space = f".{file.package}"
    for message in file.message_type:
        inner = {one.name: (f"{space}.{message.name}.{one.name}", kind) for kind, ones in (
            (Field.TYPE_MESSAGE, message.nested_type), (Field.TYPE_ENUM, message.enum_type)) for one in ones}
        for field in message.field:
            if field.type_name:
                field.type_name, field.type = inner.get(field.type_name, (f"{space}.{field.type_name}", Field.TYPE_MESSAGE))
    for method in (method for service in file.service for method in service.method):
        method.input_type, method.output_type = f"{space}.{method.input_type}", f"{space}.{method.output_type}"


class Proto:
    """One .proto file: proto.Message(...) makes a message, proto.call(channel, service, method, message) sends it."""

    def __init__(self, name):
        file, self.services = parse(FOLDER / name)
        pool = descriptor_pool.DescriptorPool()
        pool.Add(file)
        self.package = file.package
        for message in file.message_type:
            descriptor = pool.FindMessageTypeByName(f"{file.package}.{message.name}")
            setattr(self, message.name, message_factory.GetMessageClass(descriptor))

    def call(self, channel, service, method, message=None, **options):
        """The answer; of a streamed method the iterator of its answers."""
        request, answer, streamed = self.services[service][method]
        make = channel.unary_stream if streamed else channel.unary_unary
        stub = make(f"/{self.package}.{service}/{method}",
                    request_serializer=getattr(self, request).SerializeToString,
                    response_deserializer=getattr(self, answer).FromString)
        options.setdefault("timeout", 60)
        return stub(message if message is not None else getattr(self, request)(), **options)


def code_of(call):
    """The status with which a call ends."""
    try:
        call()
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK
