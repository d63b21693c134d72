import { describe, expect, test } from 'vitest'
import { fieldValidationOf } from './checked-object.ts'
import { type DecodeOptions, decodeBody } from './decode-body.ts'

const configMap = { group: '', version: 'v1', kind: 'ConfigMap' }
const json = 'application/json'

const decode = (
  text: string,
  options: Partial<DecodeOptions> = {},
  type: string | undefined = json,
) => decodeBody(Buffer.from(text), type, { expected: configMap, ...options })

const refusal = (text: string, options?: Partial<DecodeOptions>, type?: string) =>
  decode(text, options, type).then(
    () => 'accepted',
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  )

describe('encodings [GND-R60]', () => {
  test.each([
    [undefined, '{"data":{"a":"b"}}'],
    ['application/json', '{"data":{"a":"b"}}'],
    ['Application/JSON; charset=utf-8', '{"data":{"a":"b"}}'],
    ['application/yaml', 'data:\n  a: b\n'],
  ])('a body of type %s is decoded', async (type, text) => {
    const { object } = await decodeBody(Buffer.from(text), type, { expected: configMap })
    expect(object).toEqual({ kind: 'ConfigMap', apiVersion: 'v1', metadata: {}, data: { a: 'b' } })
  })

  test.each(['text/plain', 'application/cbor', 'application/json-patch+json', 'x'])(
    'a body of type %s is a 415 that lists what is understood',
    async (type) => {
      await expect(decode('{}', {}, type)).rejects.toMatchObject({
        reason: 'UnsupportedMediaType',
        message:
          'the body of the request was in an unknown format - accepted media types include: ' +
          'application/json, application/yaml, application/vnd.kubernetes.protobuf',
      })
    },
  )
})

describe('the kind of a body', () => {
  test('comes from the URL where the body does not say it', async () => {
    const { object } = await decode('{"kind":"","metadata":{"name":"x"}}')
    expect(Object.entries(object)).toEqual([
      ['kind', 'ConfigMap'],
      ['apiVersion', 'v1'],
      ['metadata', { name: 'x' }],
    ])
  })

  test.each([
    [
      'another kind',
      '{"kind":"Secret","apiVersion":"v1"}',
      'Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion',
    ],
    [
      'a kind that does not exist',
      '{"kind":"Foo","apiVersion":"v1"}',
      'Foo in version "v1" cannot be handled as a ConfigMap: no kind "Foo" is registered for version "v1"',
    ],
    [
      'a version that does not exist',
      '{"kind":"ConfigMap","apiVersion":"v2"}',
      'ConfigMap in version "v2" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "v2"',
    ],
    [
      'an apiVersion with too many parts',
      '{"kind":"ConfigMap","apiVersion":"a/b/c"}',
      'the object provided is unrecognized (must be of type ConfigMap): unexpected GroupVersion string: a/b/c (41 bytes)',
    ],
    [
      'a kind that is no string',
      '{"kind":5}',
      "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; " +
        'json parse error: json: cannot unmarshal number into Go struct field .kind of type string (10 bytes)',
    ],
  ])('%s is refused', async (_name, text, message) => {
    expect(await refusal(text)).toBe(message)
  })

  test('an Event of the other group is refused by its version', async () => {
    const expected = { group: 'events.k8s.io', version: 'v1', kind: 'Event' }
    expect(await refusal('{"kind":"Event","apiVersion":"v1"}', { expected })).toBe(
      'the API version in the data (v1) does not match the expected API version (events.k8s.io/v1)',
    )
  })

  test.each(['v1', 'rbac.authorization.k8s.io/v1'])(
    'DeleteOptions of %s are taken',
    async (apiVersion) => {
      const expected = { group: '', version: 'v1', kind: 'DeleteOptions' }
      const text = JSON.stringify({ kind: 'DeleteOptions', apiVersion, gracePeriodSeconds: 0 })
      const { object } = await decode(text, { expected })
      expect(object).toEqual({ kind: 'DeleteOptions', apiVersion, gracePeriodSeconds: 0 })
    },
  )
})

describe('bodies that cannot be read [GND-R63]', () => {
  test.each([
    ['nothing', '', 'unexpected end of JSON input (<empty>)'],
    ['half an object', '{"data":{"password":"hunter2"', 'unexpected end of JSON input (29 bytes)'],
    ['two objects', '{}{}', "invalid character '{' after top-level value (4 bytes)"],
    ['a list', '[]', 'json: cannot unmarshal array into Go value of type object (2 bytes)'],
    ['deep nesting', '['.repeat(5000), "invalid character '[' exceeded max depth (5000 bytes)"],
  ])('%s', async (_name, text, ending) => {
    expect(await refusal(text)).toBe(
      `the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: ${ending}`,
    )
  })

  test('a value of the wrong type is named with its field', async () => {
    expect(await refusal('{"data":{"a":1}}')).toBe(
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string',
    )
  })

  test('an integer written as a fraction is refused even when unknown fields are ignored', async () => {
    expect(
      await refusal('{"metadata":{"generation":1.0}}', { fieldValidation: 'Ignore' }),
    ).toContain(
      'cannot unmarshal number 1.0 into Go struct field ObjectMeta.metadata.generation of type int64',
    )
  })

  test('an integer that a number cannot hold is refused, not rounded', async () => {
    expect(await refusal('{"metadata":{"generation":9007199254740993}}')).toContain('53 bits')
  })
})

describe('unknown and duplicate fields [GND-R58]', () => {
  const text = '{"foo":1,"data":{"a":"1","a":"2"},"metadata":{"bar":{"x":[]}}}'
  const problems = [
    'unknown field "foo"',
    'duplicate field "data.a"',
    'unknown field "metadata.bar"',
  ]
  const cleaned = { kind: 'ConfigMap', apiVersion: 'v1', metadata: {}, data: { a: '2' } }

  test('Warn drops them and says so', async () => {
    const { object, warnings } = await decode(text, { fieldValidation: 'Warn' })
    expect(object).toEqual(cleaned)
    expect(warnings).toEqual(problems)
  })

  test('Ignore drops them in silence', async () => {
    const { object, warnings } = await decode(text, { fieldValidation: 'Ignore' })
    expect(object).toEqual(cleaned)
    expect(warnings).toEqual([])
  })

  test('Strict refuses them, all at once', async () => {
    expect(await refusal(text, { fieldValidation: 'Strict' })).toBe(
      `ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: ${problems.join(', ')}`,
    )
  })

  test('a duplicate key in YAML is a problem of the same kind', async () => {
    const yaml = 'data:\n  a: x\n  a: z\n'
    const options = { fieldValidation: 'Strict' } as const
    expect(await refusal(yaml, options, 'application/yaml')).toContain(
      'strict decoding error: yaml: unmarshal errors:\n  line 3: key "a" already set in map',
    )
  })

  test('at most a hundred are reported', async () => {
    const fields = Array.from({ length: 150 }, (_, i) => [`f${i}`, 1])
    const { warnings } = await decode(JSON.stringify(Object.fromEntries(fields)))
    expect(warnings).toHaveLength(100)
  })

  test('keys named like parts of Object are data like any other', async () => {
    const { object } = await decode('{"data":{"__proto__":"a","constructor":"b","toString":"c"}}')
    expect(JSON.stringify(object['data'])).toBe(
      '{"__proto__":"a","constructor":"b","toString":"c"}',
    )
  })

  test('an unknown field named __proto__ changes nothing', async () => {
    const { object, warnings } = await decode('{"__proto__":{"data":{"a":"b"}}}')
    expect(object).toEqual({ kind: 'ConfigMap', apiVersion: 'v1', metadata: {} })
    expect(warnings).toEqual(['unknown field "__proto__"'])
  })
})

describe('the fieldValidation parameter [GND-R58]', () => {
  test.each([
    [null, 'Warn'],
    ['', 'Warn'],
    ['Ignore', 'Ignore'],
    ['Strict', 'Strict'],
    ['Warn', 'Warn'],
  ])('%s means %s', (parameter, level) => {
    expect(fieldValidationOf(parameter)).toBe(level)
  })

  test('anything else is no level', () => {
    expect(fieldValidationOf('strict')).toBeUndefined()
  })
})
