//! Under what a person is found in the record once nobody is named there any more: a keyed hash of the number, or of the address.
use entities::ids::TenantId;
use runtime::{
    keyring::{hex, keyed, purpose},
    link_keys::LinkKeys,
};

/// Bytes of a hash that are kept: nobody comes upon another person's by chance.
const KEPT: usize = 16;

/// The key of a database, which outlives its secret key.
pub fn key(keys: &LinkKeys) -> [u8; 32] {
    keys.signing(purpose::ATTEMPT_NUMBER)
}

/// Of a number in E.164, or of an address in lower case. Another workspace's is another.
pub fn hash(key: &[u8; 32], tenant: TenantId, address: &str) -> String {
    let text = format!("{tenant}\n{address}");
    let whole = keyed(key, text.as_bytes());
    hex(&whole[..KEPT])
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_number_is_found_by_its_hash_and_nobody_elses_is() {
        let keys = LinkKeys::generate();
        let of =
            |keys: &LinkKeys, tenant: u128, address: &str| hash(&key(keys), TenantId(Uuid::from_u128(tenant)), address);
        let known = of(&keys, 1, "+12025550123");
        assert_eq!(known.len(), 32);
        assert_eq!(known, of(&keys, 1, "+12025550123"));
        assert_ne!(known, of(&keys, 1, "+12025550124"));
        assert_ne!(known, of(&keys, 2, "+12025550123"), "another workspace's");
        assert_ne!(
            known,
            of(&LinkKeys::generate(), 1, "+12025550123"),
            "another database's"
        );
    }
}
