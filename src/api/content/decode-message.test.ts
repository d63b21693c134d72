import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeBody } from './decode-body.ts'

const protobuf = 'application/vnd.kubernetes.protobuf'
const magic = [0x6b, 0x38, 0x73, 0x00]
const configMap = { group: '', version: 'v1', kind: 'ConfigMap' }
const pod = { group: '', version: 'v1', kind: 'Pod' }

function varint(value: number): number[] {
  const bytes: number[] = []
  let rest = BigInt(value)
  do {
    const more = rest > 0x7fn
    bytes.push(Number(rest & 0x7fn) | (more ? 0x80 : 0))
    rest >>= 7n
  } while (rest > 0n)
  return bytes
}
const field = (number: number, content: readonly number[]) => [
  ...varint(number * 8 + 2),
  ...varint(content.length),
  ...content,
]
const text = (value: string) => [...Buffer.from(value)]
const body = (...parts: number[][]) => Buffer.from([...magic, ...parts.flat()])
const typeMeta = (apiVersion: string, kind: string) =>
  field(1, [...field(1, text(apiVersion)), ...field(2, text(kind))])

const decode = (bytes: Buffer, expected = configMap) => decodeBody(bytes, protobuf, { expected })
const refusal = (bytes: Buffer, expected = configMap) =>
  decode(bytes, expected).then(
    () => 'accepted',
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  )
const entry = (key: string, value: string) =>
  field(2, [...field(1, text(key)), ...field(2, text(value))])

describe('the envelope [GND-R60]', () => {
  test('an empty envelope is an empty object of the expected kind', async () => {
    const { object } = await decode(body(field(2, [])))
    expect(object).toEqual({ kind: 'ConfigMap', apiVersion: 'v1', metadata: {} })
  })

  test.each([
    ['nothing', Buffer.alloc(0), 'empty data (<empty>)'],
    ['only the magic bytes', body(), 'empty body (4 bytes)'],
    [
      'JSON',
      Buffer.from('{}'),
      'provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] (2 bytes)',
    ],
    ['half an envelope', body([0x0a, 0x05, 0x01]), 'unexpected EOF (7 bytes)'],
    [
      'a content encoding',
      body(field(3, text('gzip'))),
      'the protobuf message has a content encoding, which is not supported (10 bytes)',
    ],
  ])('%s is a 400', async (_name, bytes, ending) => {
    expect(await refusal(bytes)).toBe(
      `the object provided is unrecognized (must be of type ConfigMap): ${ending}`,
    )
  })

  test('another kind is refused', async () => {
    expect(await refusal(body(typeMeta('v1', 'Secret'), field(2, [])))).toContain(
      'cannot be handled as a ConfigMap',
    )
  })
})

describe('a message [GND-R60]', () => {
  test('fields that are not known are skipped, whatever their wire type', async () => {
    const unknown = [
      [...varint(100 * 8), 0x96, 0x01],
      [...varint(101 * 8 + 1), 1, 2, 3, 4, 5, 6, 7, 8],
      field(102, text('x')),
      [...varint(103 * 8 + 3), ...field(1, [1]), ...varint(103 * 8 + 4)],
      [...varint(104 * 8 + 5), 1, 2, 3, 4],
    ].flat()
    const { object } = await decode(body(field(2, [...unknown, ...entry('a', 'b')])))
    expect(object['data']).toEqual({ a: 'b' })
  })

  test('a struct that comes in two parts is put together, a scalar counts the last time', async () => {
    const meta = (...parts: number[][]) => field(1, parts.flat())
    const name = (value: string) => field(1, text(value))
    const raw = [...meta(name('a'), field(3, text('ns'))), ...meta(name('b'))]
    const { object } = await decode(body(field(2, raw)))
    expect(object['metadata']).toEqual({ name: 'b', namespace: 'ns' })
  })

  test('a map entry named __proto__ is data like any other', async () => {
    const { object } = await decode(
      body(field(2, [...entry('__proto__', 'x'), ...entry('a', 'b')])),
    )
    expect(JSON.stringify(object['data'])).toBe('{"__proto__":"x","a":"b"}')
  })

  test('a list of integers may be packed', async () => {
    const groups = (numbers: number[]) => field(2, field(14, field(4, numbers)))
    const packed = await decode(body(field(2, groups([1, 2, 3]))), pod)
    const spec = packed.object['spec'] as { securityContext: unknown }
    expect(spec.securityContext).toEqual({ supplementalGroups: [1, 2, 3] })
  })
})

describe('hostile bytes are a 400 [GND-R63]', () => {
  const inMetadata = (bytes: number[]) => body(field(2, field(1, bytes)))
  test.each([
    ['a length beyond the end', inMetadata([0x0a, 0x7f, 0x61]), 'unexpected EOF'],
    [
      'a length of many terabytes',
      inMetadata([0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
      'unexpected EOF',
    ],
    [
      'a number that does not end',
      inMetadata(Array.from({ length: 11 }, () => 0xff)),
      'integer overflow',
    ],
    ['a tag with number zero', inMetadata([0x02, 0x00]), 'illegal tag'],
    ['a wire type that does not exist', inMetadata(varint(100 * 8 + 7)), 'illegal wireType 7'],
    [
      'a wire type that the field has not',
      inMetadata([0x08, 0x01]),
      'wrong wireType = 0 for field name',
    ],
    [
      'the end of a group that was never begun',
      inMetadata([...varint(103 * 8 + 4)]),
      'end of group',
    ],
    [
      'groups in groups',
      inMetadata(Array.from({ length: 10_000 }, () => varint(103 * 8 + 3)).flat()),
      'exceeded max depth',
    ],
    ['a string that is not UTF-8', inMetadata(field(1, [0xff, 0xfe])), 'not valid UTF-8'],
    [
      'a time beyond the calendar',
      inMetadata(field(8, [0x08, ...varint(2 ** 52)])),
      'out of range',
    ],
    ['an integer of more than 53 bits', inMetadata([0x38, ...varint(2 ** 60)]), '53 bits'],
    [
      'managed fields that are not JSON',
      inMetadata(field(17, field(7, field(1, text('{'))))),
      'unexpected end of JSON input',
    ],
    [
      'managed fields that are too deep',
      inMetadata(field(17, field(7, field(1, text('['.repeat(2000)))))),
      'exceeded max depth',
    ],
  ])('%s', async (_name, bytes, message) => {
    expect(await refusal(bytes)).toContain(message)
  })

  test('any bytes at all end in an object or a 400', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (bytes) => {
        const outcome = await decode(body(field(2, [...bytes])), pod).then(
          () => 'BadRequest',
          (error: unknown) => (error instanceof Error && 'reason' in error ? error.reason : error),
        )
        expect(outcome).toBe('BadRequest')
      }),
      { numRuns: 500 },
    )
  })

  test('many small parts do not take more than their share', async () => {
    const containers = Array.from({ length: 300_000 }, () => field(2, [])).flat()
    await expect(decode(body(field(2, field(2, containers))), pod)).rejects.toThrow(
      'more than 25000 values',
    )
  })

  test('a map of very many entries takes time in proportion', async () => {
    const entries = Array.from({ length: 8_000 }, (_, i) => entry(`k${i}`, 'v')).flat()
    const { object } = await decode(body(field(2, entries)))
    expect(Object.keys(object['data'] as object)).toHaveLength(8_000)
  })
})
