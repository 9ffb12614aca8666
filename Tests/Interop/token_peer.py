"""Second opinions on tokens, for Tests/OfficialClientTests/TokenPeerTests.swift: PyJWT, jwcrypto, and google-auth.

    token_peer.py make                    prints {"keys": a key set, "tokens": {algorithm: token}} of new keys
    token_peer.py check FILE              reads {"tokens": [{"token", "key", "algorithm"}]}; prints the claims of each
    token_peer.py service FILE            prints the tokens and the assertion that google-auth makes of a key file
"""

import json
import sys
import time

import jwt
from google.auth import jwt as google_jwt
from google.oauth2 import service_account
from jwcrypto import jwk
from jwcrypto import jwt as jose

FIRESTORE = "https://firestore.googleapis.com/"
DATASTORE = "https://www.googleapis.com/auth/datastore"


def make():
    """Tokens of both libraries, in turns, one for each algorithm."""
    keys, tokens = [], {}
    now = int(time.time())
    for index, algorithm in enumerate(["RS256", "RS384", "RS512", "ES256", "ES384", "EdDSA"]):
        if algorithm.startswith("RS"):
            key = jwk.JWK.generate(kty="RSA", size=2048, kid=algorithm, alg=algorithm, use="sig")
        elif algorithm.startswith("ES"):
            key = jwk.JWK.generate(kty="EC", crv="P-256" if algorithm == "ES256" else "P-384", kid=algorithm)
        else:
            key = jwk.JWK.generate(kty="OKP", crv="Ed25519", kid=algorithm)
        claims = {"iss": "https://id.example", "aud": ["web"], "sub": algorithm, "iat": now, "exp": now + 600}
        if index % 2 == 0:
            pem = key.export_to_pem(private_key=True, password=None)
            tokens[algorithm] = jwt.encode(claims, pem, algorithm=algorithm, headers={"kid": algorithm})
        else:
            token = jose.JWT(header={"alg": algorithm, "kid": algorithm}, claims=claims)
            token.make_signed_token(key)
            tokens[algorithm] = token.serialize()
        keys.append(key.export_public(as_dict=True))
    return {"keys": keys, "tokens": tokens}


def check(file):
    """The claims of our tokens, which both libraries have to verify."""
    found = []
    with open(file, encoding="utf-8") as text:
        tokens = json.load(text)["tokens"]
    for entry in tokens:
        claims = jwt.decode(entry["token"], entry["key"], algorithms=[entry["algorithm"]], audience="web")
        key = jwk.JWK.from_pem(entry["key"].encode())
        other = jose.JWT(key=key, jwt=entry["token"], algs=[entry["algorithm"]])
        assert json.loads(other.claims) == claims
        found.append(claims)
    return found


def service(file):
    """What clients send: a token of their own, one with scopes alone, and an assertion."""
    plain = service_account.Credentials.from_service_account_file(file)
    plain._create_self_signed_jwt(FIRESTORE)
    plain.refresh(None)
    scoped = service_account.Credentials.from_service_account_file(
        file, scopes=[DATASTORE], always_use_jwt_access=True)
    scoped._create_self_signed_jwt(None)
    scoped.refresh(None)
    own = google_jwt.Credentials.from_service_account_file(file, audience=FIRESTORE)
    own.refresh(None)
    exchanged = service_account.Credentials.from_service_account_file(file, scopes=[DATASTORE])
    as_text = lambda token: token.decode() if isinstance(token, bytes) else token
    return {
        "tokens": [as_text(credentials.token) for credentials in (plain, scoped, own)],
        "assertion": as_text(exchanged._make_authorization_grant_assertion()),
        "tokenURI": exchanged._token_uri,
    }


if __name__ == "__main__":
    print(json.dumps({"make": make, "check": check, "service": service}[sys.argv[1]](*sys.argv[2:])))
