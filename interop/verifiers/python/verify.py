"""Reads a token per line and says of each, in a line of JSON, whether PyJWT believes it.

PyJWT has no discovery: the document is fetched here and gives it the address of the key set and the algorithms.
"""

import json
import ssl
import sys
import urllib.request

import jwt


def main():
    issuer, audience, ca = sys.argv[1:]
    context = ssl.create_default_context(cafile=ca)
    url = issuer + "/.well-known/openid-configuration"
    with urllib.request.urlopen(url, context=context, timeout=30) as response:
        document = json.load(response)
    if document["issuer"] != issuer:
        sys.exit(f"the document is of {document['issuer']}")
    keys = jwt.PyJWKClient(document["jwks_uri"], ssl_context=context)

    def judge(token):
        try:
            claims = jwt.decode(
                token,
                keys.get_signing_key_from_jwt(token),
                algorithms=document["id_token_signing_alg_values_supported"],
                audience=audience,
                issuer=issuer,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError as error:
            return {"ok": False, "why": f"{type(error).__name__}: {error}"}
        return {"ok": True, "sub": claims["sub"]}

    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(judge(line.strip())), flush=True)


main()
