// go run verify.go SECRET TIMESTAMP SIGNATURE [NOW] < body
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

// verify tells whether a delivery is from Callboard, and fresh. body is the raw request body, now is in Unix seconds.
func verify(secret, timestamp, signature string, body []byte, now int64) bool {
	sent, err := strconv.ParseUint(timestamp, 10, 63)
	if age := now - int64(sent); err != nil || age > 300 || age < -300 {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	expected := "sha256=" + hex.EncodeToString(mac.Sum(nil))
	return hmac.Equal([]byte(expected), []byte(signature))
}

func main() {
	now := time.Now().Unix()
	if len(os.Args) > 4 {
		now, _ = strconv.ParseInt(os.Args[4], 10, 64)
	}
	body, err := io.ReadAll(os.Stdin)
	if err != nil || !verify(os.Args[1], os.Args[2], os.Args[3], body, now) {
		fmt.Println("refused")
		os.Exit(1)
	}
	fmt.Println("verified")
}
