#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""validate.py SCHEMA FILE...: checks JSON documents, or each line of .jsonl files, against a schema.

Exit 0 if all are valid, 1 with a line for every error, 77 without python3-jsonschema."""
import json
import sys

try:
    from jsonschema import Draft202012Validator
except ImportError:
    print("python3-jsonschema is not installed")
    sys.exit(77)


def refuse_constant(word):
    raise ValueError(f"{word} is not JSON")


def documents(path):
    with open(path, encoding="utf-8") as file:
        lines = file.readlines() if path.endswith(".jsonl") else [file.read()]
    for number, text in enumerate(lines, 1):
        yield number, json.loads(text, parse_constant=refuse_constant)


def main(schema_path, *paths):
    with open(schema_path, encoding="utf-8") as file:
        schema = json.load(file)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    failed = False
    for path in paths:
        try:
            for number, document in documents(path):
                for error in validator.iter_errors(document):
                    failed = True
                    where = "/".join(str(step) for step in error.absolute_path)
                    print(f"{path}:{number}: /{where}: {error.message}")
        except ValueError as error:
            failed = True
            print(f"{path}: {error}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
