//! RTP packets: read and written, never trusted. Source: RFC 3550, section 5.1.

/// Bytes of the header without contributing sources and extensions.
const HEADER: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub marker: bool,
    pub payload_type: u8,
    pub sequence: u16,
    pub timestamp: u32,
    pub ssrc: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    pub header: Header,
    pub payload: &'a [u8],
}

/// Without contributing sources, extensions and padding; `None`: it is not RTP.
pub fn read(bytes: &[u8]) -> Option<Packet<'_>> {
    let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
    let [first, second, s0, s1, t0, t1, t2, t3, i0, i1, i2, i3] = *header;
    if first >> 6 != 2 {
        return None;
    }
    let mut rest = rest.get(4 * usize::from(first & 0x0f)..)?;
    if has_extension(bytes) {
        let (extension, after) = rest.split_first_chunk::<4>()?;
        let words = u16::from_be_bytes([extension[2], extension[3]]);
        rest = after.get(4 * usize::from(words)..)?;
    }
    if first & 0x20 != 0 {
        let padding = usize::from(*rest.last()?);
        let end = rest.len().checked_sub(padding).filter(|_| padding > 0)?;
        rest = &rest[..end];
    }
    let header = Header {
        marker: second & 0x80 != 0,
        payload_type: second & 0x7f,
        sequence: u16::from_be_bytes([s0, s1]),
        timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
        ssrc: u32::from_be_bytes([i0, i1, i2, i3]),
    };
    Some(Packet { header, payload: rest })
}

/// A header extension follows. None is ever agreed with a trunk.
pub fn has_extension(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|first| first & 0x10 != 0)
}

/// RTP and RTCP of one port are told apart by the second byte. Source: RFC 5761, section 4.
pub fn is_rtcp(bytes: &[u8]) -> bool {
    bytes.get(1).is_some_and(|kind| (192..=223).contains(kind))
}

/// Replaces what is in `out`.
pub fn write(header: &Header, payload: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.push(0x80);
    out.push(u8::from(header.marker) << 7 | header.payload_type & 0x7f);
    out.extend_from_slice(&header.sequence.to_be_bytes());
    out.extend_from_slice(&header.timestamp.to_be_bytes());
    out.extend_from_slice(&header.ssrc.to_be_bytes());
    out.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEAD: Header = Header {
        marker: true,
        payload_type: 101,
        sequence: 0xfffe,
        timestamp: 0x0102_0304,
        ssrc: 0xdead_beef,
    };

    fn written(payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![1; 7];
        write(&HEAD, payload, &mut bytes);
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = written(&[1, 2, 3]);
        assert_eq!(bytes.len(), 15);
        let packet = read(&bytes).unwrap();
        assert_eq!((packet.header, packet.payload), (HEAD, &[1, 2, 3][..]));
        assert_eq!(read(&written(&[])).unwrap().payload, &[] as &[u8]);
    }

    #[test]
    fn what_surrounds_the_payload_is_passed_over() {
        let mut bytes = written(&[]);
        // Two contributing sources, an extension of one word, and three bytes of padding.
        bytes[0] |= 0x02 | 0x10 | 0x20;
        bytes.extend([9; 8]);
        bytes.extend([0xbe, 0xde, 0, 1, 7, 7, 7, 7]);
        bytes.extend([5, 6, 0, 0, 3]);
        assert_eq!(read(&bytes).unwrap().payload, &[5, 6]);
        for cut in 0..bytes.len() {
            // Never read beyond its end; what is cut inside the padding's count is read as it says.
            let _ = read(&bytes[..cut]);
        }
    }

    #[test]
    fn what_is_not_rtp_is_refused() {
        let good = written(&[1, 2, 3]);
        for (what, at, byte) in [("version 1", 0, 0x40), ("more padding than bytes", 0, 0xa0)] {
            let mut bad = good.clone();
            bad[at] = byte;
            bad[14] = 200;
            assert_eq!(read(&bad), None, "{what}");
        }
        let mut unpadded = good.clone();
        unpadded[0] = 0xa0;
        unpadded[14] = 0;
        assert_eq!(read(&unpadded), None, "padding of nothing");
        assert_eq!(read(&good[..11]), None);
        assert_eq!(read(&[]), None);
        assert!(is_rtcp(&[0x80, 200]) && is_rtcp(&[0x81, 201]) && !is_rtcp(&[0x80, 0x80]) && !is_rtcp(&[0x80]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100_000))]
        #[test]
        fn any_bytes_are_survived(mut bytes in proptest::collection::vec(any::<u8>(), 0..64), version in any::<bool>()) {
            if let Some(first) = bytes.first_mut().filter(|_| version) {
                *first = *first & 0x3f | 0x80;
            }
            if let Some(packet) = read(&bytes) {
                prop_assert!(packet.payload.len() + HEADER <= bytes.len());
            }
        }
    }
}
