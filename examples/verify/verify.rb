# ruby verify.rb SECRET TIMESTAMP SIGNATURE [NOW] < body
require "openssl"

# Is this delivery from Callboard, and fresh? `body` is the raw request body, `now` is in Unix seconds.
def verify(secret, timestamp, signature, body, now = Time.now.to_i)
  return false unless timestamp.b.match?(/\A[0-9]{1,12}\z/) && (now - timestamp.to_i).abs <= 300

  digest = OpenSSL::HMAC.hexdigest("SHA256", secret, timestamp.b + "." + body.b)
  OpenSSL.secure_compare("sha256=#{digest}", signature)
end

if __FILE__ == $PROGRAM_NAME
  secret, timestamp, signature, *now = ARGV
  good = verify(secret, timestamp, signature, $stdin.binmode.read, *now.map(&:to_i))
  puts good ? "verified" : "refused"
  exit good
end
