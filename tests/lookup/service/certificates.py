"""Certificates for tests of TLS, made by OpenSSL."""

from __future__ import annotations

import subprocess
from pathlib import Path


def make_certificate(directory: Path) -> tuple[str, str]:
    """Make a self-signed certificate of 127.0.0.1 and its key; return the paths of both."""
    certificate, key = directory / "certificate.pem", directory / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command.split(), *names, *files], check=True, capture_output=True)
    return str(certificate), str(key)
