// .NET Core 2.1 or newer, or Mono: mcs Verify.cs && mono Verify.exe SECRET TIMESTAMP SIGNATURE [NOW] < body
using System;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Security.Cryptography;
using System.Text;

public static class Verifier
{
    /// <summary>Is this delivery from Callboard, and fresh? body: the raw request body; now: Unix seconds.</summary>
    public static bool Verify(string secret, string timestamp, string signature, byte[] body, long now)
    {
        var isNumber = long.TryParse(timestamp, NumberStyles.None, CultureInfo.InvariantCulture, out var sent);
        if (!isNumber || Math.Abs(now - sent) > 300) return false;
        using (var mac = new HMACSHA256(Encoding.UTF8.GetBytes(secret)))
        {
            var digest = mac.ComputeHash(Encoding.UTF8.GetBytes(timestamp + ".").Concat(body).ToArray());
            var expected = "sha256=" + BitConverter.ToString(digest).Replace("-", "").ToLowerInvariant();
            var given = Encoding.UTF8.GetBytes(signature);
            return CryptographicOperations.FixedTimeEquals(Encoding.UTF8.GetBytes(expected), given);
        }
    }

    public static int Main(string[] args)
    {
        var now = args.Length > 3 ? long.Parse(args[3]) : DateTimeOffset.UtcNow.ToUnixTimeSeconds();
        var body = new MemoryStream();
        Console.OpenStandardInput().CopyTo(body);
        var good = Verify(args[0], args[1], args[2], body.ToArray(), now);
        Console.WriteLine(good ? "verified" : "refused");
        return good ? 0 : 1;
    }
}
