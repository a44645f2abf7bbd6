# python3 verify.py SECRET TIMESTAMP SIGNATURE [NOW] < body
import hashlib, hmac, re, sys, time


def verify(secret: str, timestamp: str, signature: str, body: bytes, now: float | None = None) -> bool:
    """Is this delivery from Callboard, and fresh? `body` is the raw request body, `now` is in Unix seconds."""
    now = time.time() if now is None else now
    if not re.fullmatch("[0-9]{1,12}", timestamp) or abs(now - int(timestamp)) > 300:
        return False
    base = timestamp.encode() + b"." + body
    expected = "sha256=" + hmac.new(secret.encode(), base, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), signature.encode(errors="replace"))


if __name__ == "__main__":
    secret, timestamp, signature, *now = sys.argv[1:]
    good = verify(secret, timestamp, signature, sys.stdin.buffer.read(), *map(float, now))
    print("verified" if good else "refused")
    sys.exit(0 if good else 1)
