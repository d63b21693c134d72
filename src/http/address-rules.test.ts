import fc from 'fast-check'
import ipaddr from 'ipaddr.js'
import { describe, expect, test } from 'vitest'
import {
  addressTest,
  classifyAddress,
  isDialable,
  isLoopback,
  isPlatformAddress,
  rangeTest,
} from './address-rules.ts'
import { platformAddresses, registeredAddresses } from './special-addresses.ts'

const everybody = [
  '1.1.1.1',
  '93.184.216.34',
  '2606:4700:4700::1111',
  '::ffff:1.1.1.1',
  '64:ff9b::1.1.1.1',
]
const behind = [
  '10.1.2.3',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '100.64.0.1',
  '127.0.0.1',
  '127.8.8.8',
  '::1',
  'fd12:3456::1',
  '::ffff:10.0.0.1',
  '::ffff:7f00:1',
  '::ffff:0:127.0.0.1',
  '64:ff9b::10.0.0.1',
]
const nobody = [
  '0.0.0.0',
  '169.254.169.254',
  '224.0.0.1',
  '255.255.255.255',
  '240.0.0.1',
  '::',
  'fe80::1',
  'fe80::1%eth0',
  'ff02::1',
  'not-an-address',
  '',
]

describe('where documents may be fetched from [ISS-P2]', () => {
  const usual = addressTest(false)
  const any = addressTest(true)
  test.each(everybody)('%s is open to all', (address) => {
    expect([usual(address), any(address)]).toEqual([true, true])
  })
  test.each(behind)('%s only if private addresses are allowed', (address) => {
    expect([usual(address), any(address)]).toEqual([false, true])
  })
  test.each(nobody)('%s never', (address) => {
    expect([usual(address), any(address)]).toEqual([false, false])
  })
  test('the old form of IPv4 in IPv6 counts as what it means', () => {
    expect([usual('::127.0.0.1'), usual('::7f00:1')]).toEqual([false, false])
  })

  test('ranges that are named are allowed, and nothing beside them', () => {
    const some = addressTest(['10.1.0.0/16', 'fd00:ec2::254/128'])
    expect(['10.1.9.9', '::ffff:10.1.9.9', 'fd00:ec2::254'].map(some)).toEqual([true, true, true])
    expect(['10.2.0.1', '127.0.0.1', '169.254.1.1'].map(some)).toEqual([false, false, false])
  })

  test.each(['10.0.0.0', '10.0.0.0/33', 'x/8', '::1/129', 'fe80::%1/64', ''])(
    '%j is no range',
    (range) => {
      expect(() => addressTest([range])).toThrow(TypeError)
      expect(() => rangeTest([range])).toThrow(TypeError)
    },
  )
})

/** First and last address of a range. */
function endsOf(range: string): string[] {
  const [address = '', bits = ''] = range.split('/')
  const bytes = ipaddr.parse(address).toByteArray()
  const last = bytes.map((byte, index) => {
    const free = Math.min(8, Math.max(0, (index + 1) * 8 - Number(bits)))
    return byte | (2 ** free - 1)
  })
  return [bytes, last].map((each) => ipaddr.fromByteArray(each).toString())
}

function isWithin(address: string, range: string): boolean {
  const [parsed, [network, bits]] = [ipaddr.parse(address), ipaddr.parseCIDR(range)]
  return parsed.kind() === network.kind() && parsed.match(network, bits)
}

/** Every way in which an IPv6 address stands for an IPv4 address, and the spellings of an address. */
const embeddings: Readonly<Record<string, (address: string) => string>> = {
  'IPv4-mapped': (address) => `::ffff:${address}`,
  'IPv4-mapped in hex': (address) => `::FFFF:${hexOf(address)}`,
  'IPv4-mapped in full': (address) => `0000:0000:0000:0000:0000:ffff:${hexOf(address)}`,
  'IPv4-translated': (address) => `::ffff:0:${address}`,
  'IPv4-compatible': (address) => `::${address}`,
  NAT64: (address) => `64:ff9b::${address}`,
  'NAT64 in hex': (address) => `64:ff9b::${hexOf(address)}`,
  'local NAT64': (address) => `64:ff9b:1::${address}`,
  '6to4': (address) => `2002:${hexOf(address)}::1`,
  Teredo: (address) => `2001:0:${hexOf(address)}::1`,
  'Teredo, inverted': (address) => `2001::${hexOf(address, 0xff)}`,
  ISATAP: (address) => `2606:4700::5efe:${address}`,
  'ISATAP of a unique address': (address) => `2606:4700::200:5efe:${address}`,
  'IPv4-mapped with a zone': (address) => `::ffff:${address}%eth0`,
}

function hexOf(address: string, mask = 0): string {
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map((part) => Number(part) ^ mask)
  return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`
}

const dialed = new Set(['public', 'private', 'documentation', 'benchmarking'])
const rows = [...platformAddresses, ...registeredAddresses]

describe('every row of the tables in every form [SEC-R1201] [SEC-R1202]', () => {
  test.each(rows)('$range ($class: $source) is what its row says', (row) => {
    for (const address of endsOf(row.range)) {
      const first = rows.find(({ range }) => isWithin(address, range)) ?? row
      expect(classifyAddress(address)?.class).toBe(first.class)
      expect(isDialable(address)).toBe(dialed.has(first.class))
    }
  })

  test.each(rows.filter(({ range }) => range.includes('.')))(
    '$range is not dialed in any embedding',
    (row) => {
      for (const address of endsOf(row.range)) {
        for (const [form, embed] of Object.entries(embeddings)) {
          const embedded = embed(address)
          // Pods are never dialed at such addresses, whatever is inside.
          expect([form, embedded, isDialable(embedded)]).toEqual([form, embedded, false])
          const plain = [addressTest(false)(address), addressTest(true)(address)]
          const inside = [addressTest(false)(embedded), addressTest(true)(embedded)]
          // Documents: no more than at the address itself. `::` and `::1` are addresses of IPv6.
          if (form === 'IPv4-compatible' && address === '0.0.0.0') continue
          for (const [index, allowed] of inside.entries())
            expect([form, embedded, allowed && !plain[index]]).toEqual([form, embedded, false])
        }
      }
    },
  )

  test.each(platformAddresses)('$range is a platform address in every embedding', ({ range }) => {
    for (const address of endsOf(range)) {
      const forms = range.includes('.') ? Object.values(embeddings) : []
      for (const form of range.includes('.') ? [address] : [address, `${address}%eth0`])
        expect([form, isPlatformAddress(form)]).toEqual([form, true])
      for (const embed of forms)
        expect([embed(address), isPlatformAddress(embed(address))]).toEqual([embed(address), true])
    }
  })

  test.each([
    '0xa9fea9fe',
    '0xa9.0xfe.0xa9.0xfe',
    '0251.0376.0251.0376',
    '2852039166',
    '169.254.43518',
    '169.16689662',
    '169.254.169.254.',
    '169.254.169.254%eth0',
    '[fd00:ec2::254]',
    'fd00:ec2::254/128',
    ' 10.0.0.1',
    '１０.0.0.1',
  ])('%j is no address: nothing is dialed by it', (text) => {
    const tests = [isDialable, addressTest(true), addressTest(false), rangeTest(['0.0.0.0/0'])]
    expect(tests.map((isAllowed) => isAllowed(text))).toEqual([false, false, false, false])
  })

  test('no address with a zone is dialed', () => {
    expect(['fd12::1%eth0', '::1%lo', 'fe80::1%1', '2606:4700::1%2'].map(isDialable)).toEqual([
      false,
      false,
      false,
      false,
    ])
  })
})

test('the tables have every range of the maintained list of ipaddr.js [SEC-R1203]', () => {
  const lists: readonly object[] = [
    ipaddr.IPv4.prototype as unknown as object,
    ipaddr.IPv6.prototype as unknown as object,
  ]
  type Range = readonly [ipaddr.IPv4 | ipaddr.IPv6, number]
  let count = 0
  for (const list of lists) {
    const { SpecialRanges: named } = list as { SpecialRanges: Record<string, Range | Range[]> }
    for (const [name, value] of Object.entries(named)) {
      const ranges = Array.isArray(value[0]) ? (value as Range[]) : [value as Range]
      for (const [address, bits] of ranges) {
        for (const end of endsOf(`${address.toString()}/${bits}`)) {
          const found = classifyAddress(end)
          const isSpecial = found?.class !== 'public' || found.isDisguised
          expect([name, end, isSpecial]).toEqual([name, end, true])
          count++
        }
      }
    }
  }
  expect(count).toBeGreaterThan(60)
})

test('what ipaddr.js takes for special is never public here [SEC-R1203]', () => {
  const isAgreed = (address: string): boolean => {
    const found = classifyAddress(address)
    const isPublic = found?.class === 'public' && !found.isDisguised
    return !isPublic || ipaddr.parse(address).range() === 'unicast'
  }
  const v4 = fc.check(fc.property(fc.ipV4(), isAgreed), { numRuns: 2_000 })
  const v6 = fc.check(fc.property(fc.ipV6(), isAgreed), { numRuns: 500 })
  expect([v4.counterexample, v6.counterexample]).toEqual([null, null])
})

test('ranges of an operator hold every spelling of an address, and names never', () => {
  const isAllowed = rangeTest(['10.244.0.0/16', 'fd12:3456::/32'])
  expect(['10.244.9.9', 'fd12:3456::1', 'FD12:3456:0:0::1'].map(isAllowed)).toEqual([
    true,
    true,
    true,
  ])
  expect(['10.245.0.1', 'fd12:3457::1', 'localhost', ''].map(isAllowed)).toEqual([
    false,
    false,
    false,
    false,
  ])
})

test.each([
  ['AWS', ['169.254.169.254', '169.254.170.2', '169.254.170.23', 'fd00:ec2::254', 'fd00:ec2::23']],
  ['Google Cloud', ['169.254.169.254', 'fd20:ce::254']],
  ['Azure', ['169.254.169.254', '168.63.129.16']],
  ['Oracle Cloud', ['169.254.169.254', '192.0.0.192', 'fd00:c1::a9fe:a9fe']],
  ['Alibaba Cloud', ['100.100.100.200']],
  ['Tencent Cloud', ['169.254.0.23', '169.254.10.10']],
  ['Volcano Engine', ['100.96.0.96']],
  ['UCloud', ['100.80.80.80']],
  ['Scaleway', ['169.254.42.42', 'fd00:42::42']],
  ['Akamai', ['169.254.169.254', 'fd00:a9fe:a9fe::1']],
  ['OpenStack', ['169.254.169.254', 'fe80::a9fe:a9fe']],
])('[SEC-R1252] metadata of %s is dialed by no client', (_platform, addresses) => {
  const refuses = (address: string): boolean =>
    isPlatformAddress(address) && !isDialable(address) && !addressTest(true)(address)
  expect(addresses.filter((address) => !refuses(address))).toEqual([])
})

test('[SEC-R1250] a range of one family holds no address of the other, however wide it is', () => {
  const v6Widths = Array.from({ length: 97 }, (_none, bits) => `::/${bits}`)
  for (const range of [...v6Widths, 'fd00::/8', '2000::/3'])
    for (const address of ['10.0.0.1', '198.51.100.1', '::ffff:10.0.0.1', '64:ff9b::a00:1'])
      expect([range, address, rangeTest([range])(address)]).toEqual([range, address, false])
  expect(rangeTest(['0.0.0.0/0'])('fd12::1')).toBe(false)
  expect(rangeTest(['::/0'])('fd12::1')).toBe(true)
})

test('an IPv4 range may be written as IPv4-mapped', () => {
  const isAllowed = rangeTest(['::ffff:10.1.0.0/112', '::FFFF:a02:0/111'])
  expect(['10.1.9.9', '10.2.0.1', '10.3.0.1'].map(isAllowed)).toEqual([true, true, true])
  expect(['10.0.0.1', '10.4.0.1', 'fd12::1'].map(isAllowed)).toEqual([false, false, false])
})

test('every spelling of an address counts as the same', () => {
  const usual = addressTest(false)
  const groups = fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 8, maxLength: 8 })
  const spellings = (parts: readonly number[]): string[] => {
    const hex = parts.map((part) => part.toString(16))
    const long = parts.map((part) => part.toString(16).padStart(4, '0')).join(':')
    const [g = 0, h = 0] = parts.slice(6)
    const ipv4 = [g >> 8, g & 255, h >> 8, h & 255].join('.')
    const short = new URL(`http://[${hex.join(':')}]`).hostname.slice(1, -1)
    return [hex.join(':'), long, long.toUpperCase(), `${hex.slice(0, 6).join(':')}:${ipv4}`, short]
  }
  fc.assert(
    fc.property(groups, (parts) => {
      expect(new Set(spellings(parts).map(usual)).size).toBe(1)
    }),
  )
  const inner = fc.tuple(fc.constantFrom('::ffff:', '64:ff9b::', '::'), fc.ipV4())
  fc.assert(
    fc.property(inner, ([prefix, address]) => {
      if (prefix === '::' && address.startsWith('0.0.')) return
      expect(usual(`${prefix}${address}`)).toBe(usual(address))
    }),
  )
})

test('loopback is 127.0.0.0/8 and ::1, in every spelling', () => {
  expect(['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1'].map(isLoopback)).not.toContain(false)
  expect(['128.0.0.1', '::2', 'localhost', '0.0.0.0'].map(isLoopback)).not.toContain(true)
})
