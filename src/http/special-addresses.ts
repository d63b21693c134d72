/** What an address is for, as far as it decides whether it may be dialed. */
export type AddressClass =
  | 'public'
  | 'private'
  | 'loopback'
  | 'link-local'
  | 'multicast'
  | 'documentation'
  | 'benchmarking'
  | 'reserved'
  /** An IPv6 address that leads to an IPv4 address through a relay: 6to4, Teredo, ISATAP, local NAT64. */
  | 'transition'
  /** Metadata, credentials and control channels of a cloud platform. */
  | 'platform'

/** A range of addresses, its class and where that is written. */
export interface AddressRow {
  readonly range: string
  readonly class: AddressClass
  readonly source: string
}

const row = (range: string, kind: AddressClass, source: string): AddressRow => ({
  range,
  class: kind,
  source,
})

/**
 * Addresses by which cloud platforms hand out metadata and credentials. Many lie in 169.254.0.0/16, which is refused
 * as a whole where Pods and issuers are dialed; the tunnel agent refuses exactly these.
 */
export const platformAddresses: readonly AddressRow[] = [
  row(
    '169.254.169.254/32',
    'platform',
    'AWS, Google Cloud, Azure, Oracle, OpenStack, DigitalOcean, Hetzner, IBM, Exoscale: instance metadata',
  ),
  row('169.254.169.253/32', 'platform', 'AWS: Route 53 Resolver of a VPC'),
  row('169.254.169.123/32', 'platform', 'AWS: Time Sync Service'),
  row('169.254.169.249/32', 'platform', 'AWS: licence activation of Windows instances'),
  row(
    '169.254.169.250/31',
    'platform',
    'AWS: licence activation of Windows instances; Rancher metadata',
  ),
  row('169.254.170.2/32', 'platform', 'AWS: ECS task metadata and credentials'),
  row('169.254.170.23/32', 'platform', 'AWS: EKS Pod Identity Agent'),
  row('169.254.0.23/32', 'platform', 'Tencent Cloud: metadata.tencentyun.com'),
  row('169.254.10.10/32', 'platform', 'Tencent Cloud: metadata of older instances'),
  row('169.254.42.42/32', 'platform', 'Scaleway: instance metadata'),
  row('169.254.16.0/24', 'platform', 'IBM Cloud: infrastructure services of a VPC'),
  row('100.100.100.200/32', 'platform', 'Alibaba Cloud: ECS metadata'),
  row('100.96.0.96/32', 'platform', 'Volcano Engine: ECS metadata and credentials'),
  row('100.80.80.80/32', 'platform', 'UCloud: UHost metadata'),
  row('168.63.129.16/32', 'platform', 'Azure: WireServer, DNS and health probes'),
  row('192.0.0.192/32', 'platform', 'Oracle Cloud Classic: instance metadata'),
  row(
    'fd00:ec2::/32',
    'platform',
    'AWS: IMDS ::254, resolver ::253, EKS Pod Identity ::23, time ::123',
  ),
  row('fd20:ce::254/128', 'platform', 'Google Cloud: metadata server of IPv6-only instances'),
  row('fd00:c1::a9fe:a9fe/128', 'platform', 'Oracle Cloud: instance metadata over IPv6'),
  row('fd00:42::42/128', 'platform', 'Scaleway: instance metadata over IPv6'),
  row('fd00:a9fe:a9fe::/48', 'platform', 'Akamai (Linode): instance metadata over IPv6'),
  row('fe80::a9fe:a9fe/128', 'platform', 'OpenStack, Hetzner: instance metadata over IPv6'),
]

/** The special-purpose registries of IANA, with multicast and the deprecated site-local addresses. */
export const registeredAddresses: readonly AddressRow[] = [
  row('0.0.0.0/8', 'reserved', 'RFC 791 §3.2: this network'),
  row('10.0.0.0/8', 'private', 'RFC 1918'),
  row('100.64.0.0/10', 'private', 'RFC 6598: shared address space'),
  row('127.0.0.0/8', 'loopback', 'RFC 1122 §3.2.1.3'),
  row('169.254.0.0/16', 'link-local', 'RFC 3927'),
  row('172.16.0.0/12', 'private', 'RFC 1918'),
  row('192.0.0.0/24', 'reserved', 'RFC 6890: IETF protocol assignments'),
  row('192.0.2.0/24', 'documentation', 'RFC 5737'),
  row('192.31.196.0/24', 'reserved', 'RFC 7535: AS112'),
  row('192.52.193.0/24', 'reserved', 'RFC 7450: AMT'),
  row('192.88.99.0/24', 'transition', 'RFC 7526: 6to4 relay anycast'),
  row('192.168.0.0/16', 'private', 'RFC 1918'),
  row('192.175.48.0/24', 'reserved', 'RFC 7534: AS112'),
  row('198.18.0.0/15', 'benchmarking', 'RFC 2544'),
  row('198.51.100.0/24', 'documentation', 'RFC 5737'),
  row('203.0.113.0/24', 'documentation', 'RFC 5737'),
  row('224.0.0.0/4', 'multicast', 'RFC 5771'),
  row('240.0.0.0/4', 'reserved', 'RFC 1112 §4, with the limited broadcast address'),
  row('::/128', 'reserved', 'RFC 4291: unspecified'),
  row('::1/128', 'loopback', 'RFC 4291'),
  row('64:ff9b:1::/48', 'transition', 'RFC 8215: local-use NAT64'),
  row('100::/64', 'reserved', 'RFC 6666: discard-only'),
  row('100:0:0:1::/64', 'reserved', 'RFC 9780: dummy prefix'),
  row('2001::/32', 'transition', 'RFC 4380: Teredo'),
  row('2001::/23', 'reserved', 'RFC 2928: IETF protocol assignments'),
  row('2001:db8::/32', 'documentation', 'RFC 3849'),
  row('2002::/16', 'transition', 'RFC 3056: 6to4'),
  row('2620:4f:8000::/48', 'reserved', 'RFC 7534: AS112'),
  row('3fff::/20', 'documentation', 'RFC 9637'),
  row('5f00::/16', 'reserved', 'RFC 9602: SRv6 segment identifiers'),
  row('fc00::/7', 'private', 'RFC 4193: unique local'),
  row('fe80::/10', 'link-local', 'RFC 4291'),
  row('fec0::/10', 'reserved', 'RFC 3879: site-local, deprecated'),
  row('ff00::/8', 'multicast', 'RFC 4291'),
]
