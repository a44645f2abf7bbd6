<?php
// php verify.php SECRET TIMESTAMP SIGNATURE [NOW] < body
declare(strict_types=1);

/** Is this delivery from Callboard, and fresh? `$body` is the raw request body, `$now` is in Unix seconds. */
function verify(string $secret, string $timestamp, string $signature, string $body, ?int $now = null): bool
{
    if (!preg_match('/\A[0-9]{1,12}\z/', $timestamp) || abs(($now ?? time()) - (int) $timestamp) > 300) {
        return false;
    }
    $expected = 'sha256=' . hash_hmac('sha256', "$timestamp.$body", $secret);
    return hash_equals($expected, $signature);
}

if (realpath($_SERVER['SCRIPT_FILENAME']) === __FILE__) {
    [, $secret, $timestamp, $signature] = $argv;
    $now = isset($argv[4]) ? (int) $argv[4] : null;
    $good = verify($secret, $timestamp, $signature, (string) file_get_contents('php://stdin'), $now);
    echo $good ? 'verified' : 'refused', PHP_EOL;
    exit($good ? 0 : 1);
}
