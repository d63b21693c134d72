import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Http2Error } from './frames.ts'
import { encodeHeaders, HpackDecoder } from './hpack.ts'

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex')

function failureOf(act: () => unknown): unknown {
  try {
    act()
    return undefined
  } catch (error) {
    return error
  }
}

const first = [
  [':method', 'GET'],
  [':scheme', 'http'],
  [':path', '/'],
  [':authority', 'www.example.com'],
]
const answers = [
  [
    [':status', '302'],
    ['cache-control', 'private'],
    ['date', 'Mon, 21 Oct 2013 20:13:21 GMT'],
    ['location', 'https://www.example.com'],
  ],
  [
    [':status', '307'],
    ['cache-control', 'private'],
    ['date', 'Mon, 21 Oct 2013 20:13:21 GMT'],
    ['location', 'https://www.example.com'],
  ],
]

describe('the examples of RFC 7541, appendix C', () => {
  test.each([
    ['plain', '828684410f7777772e6578616d706c652e636f6d', '828684be58086e6f2d6361636865'],
    ['Huffman-coded', '828684418cf1e3c2e5f23a6ba0ab90f4ff', '828684be5886a8eb10649cbf'],
  ])('[TUN-W3] %s requests share a table', (_name, one, two) => {
    const decoder = new HpackDecoder()
    expect(decoder.decode(hex(one))).toEqual(first)
    expect(decoder.decode(hex(two))).toEqual([...first, ['cache-control', 'no-cache']])
  })

  test('[TUN-W3] a Huffman-coded answer, and a table of 256 bytes that forgets', () => {
    const decoder = new HpackDecoder()
    decoder.decode(hex('3fe101'))
    const one =
      '488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3'
    expect(decoder.decode(hex(one))).toEqual(answers[0])
    expect(decoder.decode(hex('4883640effc1c0bf'))).toEqual(answers[1])
  })
})

describe('header blocks', () => {
  test('[TUN-W3] whatever we encode is decoded again', () => {
    const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,200}$/)
    const value = fc.stringMatching(/^[\x20-\x7e]{0,300}$/)
    fc.assert(
      fc.property(fc.array(fc.tuple(name, value), { maxLength: 20 }), (fields) => {
        expect(new HpackDecoder().decode(encodeHeaders(fields))).toEqual(fields)
      }),
    )
  })

  test('[TUN-W3] a token is marked as never to be remembered', () => {
    expect(encodeHeaders([['authorization', 'Bearer x']])[0]).toBe(0x10)
  })

  test.each([
    ['a number that is not known', 'c0'],
    ['a name that is cut off', '0005616263'],
    ['a number without an end', 'ffffffffffffff'],
    ['a table larger than granted', '3fe2ff01'],
    ['a code that does not exist', '0085ffffffffff00'],
    ['padding that is not of ones', '00 81 18 00'],
  ])('[TUN-W3] %s is a compression error', (_name, block) => {
    expect(() => new HpackDecoder().decode(hex(block))).toThrow(Http2Error)
  })

  test('[TUN-W3] a small block that unpacks to a large list is refused', () => {
    const decoder = new HpackDecoder()
    const large = Buffer.concat([hex('40 01 61'), hex('7f 810f'), Buffer.alloc(2_048, 0x62)])
    decoder.decode(large)
    expect(() => decoder.decode(Buffer.alloc(100, 0xbe))).toThrow(/too long/)
  })

  test('[TUN-W3] any bytes end in headers or an Http2Error', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(failureOf(() => new HpackDecoder().decode(Buffer.from(bytes)))).toSatisfy(
          (error) => error === undefined || error instanceof Http2Error,
        )
      }),
      { numRuns: 2_000 },
    )
  })
})
