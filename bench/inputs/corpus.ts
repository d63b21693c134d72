import { gzipSync } from 'node:zlib'
import { type FieldSchema, type StructSchema, schemaOf } from '../../src/api/schema/index.ts'

/** Media types of request bodies; the table of the product decides which exist. */
export type Encoding =
  | 'application/json'
  | 'application/yaml'
  | 'application/vnd.kubernetes.protobuf'

/** A kind that bodies are sent as. */
export interface InputKind {
  readonly group: string
  readonly version: string
  readonly kind: string
}

/** A body that costs much: a generator of about so many bytes. */
export interface CostlyBody {
  readonly name: string
  readonly encoding: Encoding
  readonly kind: InputKind
  readonly make: (bytes: number) => Buffer
}

const core = (kind: string): InputKind => ({ group: '', version: 'v1', kind })
const pod = core('Pod')
const configMap = core('ConfigMap')
const service = core('Service')
const secret = core('Secret')
const endpoints = core('Endpoints')
const role: InputKind = { group: 'rbac.authorization.k8s.io', version: 'v1', kind: 'Role' }
const slice: InputKind = { group: 'discovery.k8s.io', version: 'v1', kind: 'EndpointSlice' }
const csr: InputKind = {
  group: 'certificates.k8s.io',
  version: 'v1',
  kind: 'CertificateSigningRequest',
}
const accessReview: InputKind = {
  group: 'authorization.k8s.io',
  version: 'v1',
  kind: 'SelfSubjectAccessReview',
}
const subjectReview: InputKind = { ...accessReview, kind: 'SubjectAccessReview' }
const tokenReview: InputKind = {
  group: 'authentication.k8s.io',
  version: 'v1',
  kind: 'TokenReview',
}

/** `item` of each index, between two texts, until there are so many bytes. */
function repeated(
  before: string,
  item: (index: number) => string,
  after: string,
): (bytes: number) => Buffer {
  return (bytes) => {
    const items: string[] = []
    let size = before.length + after.length
    for (let index = 0; size < bytes; index++) {
      const text = item(index)
      items.push(text)
      size += text.length + 1
    }
    return Buffer.from(before + items.join(',') + after)
  }
}

/** The same without commas between the items. */
function filled(before: string, item: string, after: string): (bytes: number) => Buffer {
  return (bytes) => {
    const count = Math.max(1, Math.floor((bytes - before.length - after.length) / item.length))
    return Buffer.from(before + item.repeat(count) + after)
  }
}

const named = '"metadata":{"name":"a"}'
const always = (text: string) => () => text

type Row = readonly [name: string, kind: InputKind, make: (bytes: number) => Buffer]

/** Bodies that are JSON, and most of them YAML as well. */
const jsonRows: readonly Row[] = [
  ['empty structs', pod, repeated('{"spec":{"containers":[', always('{}'), ']}}')],
  ['nulls for structs', pod, repeated('{"spec":{"containers":[', always('null'), ']}}')],
  ['wrong structs', pod, repeated('{"spec":{"containers":[', always('0'), ']}}')],
  [
    'structs in structs',
    pod,
    repeated('{"spec":{"containers":[', always('{"livenessProbe":{},"lifecycle":{}}'), ']}}'),
  ],
  ['empty volumes', pod, repeated(`{${named},"spec":{"volumes":[`, always('{"name":"v"}'), ']}}')],
  ['tolerations', pod, repeated(`{${named},"spec":{"tolerations":[`, always('{"key":"a"}'), ']}}')],
  [
    'environment',
    pod,
    repeated(
      `{${named},"spec":{"containers":[{"name":"c","image":"i","env":[`,
      (i) => `{"name":"${i}"}`,
      ']}]}}',
    ),
  ],
  [
    'ports',
    pod,
    repeated(
      `{${named},"spec":{"containers":[{"name":"c","image":"i","ports":[`,
      (i) => `{"containerPort":${1 + (i % 65535)}}`,
      ']}]}}',
    ),
  ],
  [
    'volume mounts',
    pod,
    repeated(
      `{${named},"spec":{"containers":[{"name":"c","image":"i","volumeMounts":[`,
      (i) => `{"name":"v","mountPath":"/${i}"}`,
      ']}]}}',
    ),
  ],
  [
    'containers',
    pod,
    repeated(`{${named},"spec":{"containers":[`, (i) => `{"name":"c${i}","image":"i"}`, ']}}'),
  ],
  ['unknown numbers', configMap, repeated(`{${named},"x":[`, always('0'), ']}')],
  ['unknown keys', configMap, repeated(`{${named},`, (i) => `"${i}":0`, '}')],
  ['unknown deep keys', pod, repeated('{"spec":{', (i) => `"${i.toString(36)}":{}`, '}}')],
  ['unknown keys of items', pod, repeated('{"spec":{"containers":[', always('{"x":0}'), ']}}')],
  ['duplicate keys', configMap, repeated(`{${named},`, always('"data":{}'), '}')],
  ['duplicate data', configMap, repeated(`{${named},"data":{`, always('"a":""'), '}}')],
  ['data keys', configMap, repeated(`{${named},"data":{`, (i) => `"${i}":""`, '}}')],
  ['wrong data keys', configMap, repeated(`{${named},"data":{`, (i) => `"/${i}":""`, '}}')],
  ['wrong data values', configMap, repeated(`{${named},"data":{`, (i) => `"${i}":0`, '}}')],
  ['labels', configMap, repeated('{"metadata":{"name":"a","labels":{', (i) => `"${i}":"x"`, '}}}')],
  [
    'wrong labels',
    configMap,
    repeated('{"metadata":{"name":"a","labels":{', (i) => `"-${i}/-":"-"`, '}}}'),
  ],
  [
    'annotations',
    configMap,
    repeated('{"metadata":{"name":"a","annotations":{', (i) => `"${i}":""`, '}}}'),
  ],
  [
    'owners',
    configMap,
    repeated(
      '{"metadata":{"name":"a","ownerReferences":[',
      (i) => `{"kind":"A","apiVersion":"v1","name":"a","uid":"${i}"}`,
      ']}}',
    ),
  ],
  [
    'finalizers',
    configMap,
    repeated('{"metadata":{"name":"a","finalizers":[', (i) => `"a/${i}"`, ']}}'),
  ],
  [
    'managed fields',
    configMap,
    repeated('{"metadata":{"name":"a","managedFields":[', always('{"fieldsV1":{"f:a":{}}}'), ']}}'),
  ],
  [
    'fractions',
    pod,
    repeated('{"spec":{"containers":[{"ports":[', always('{"hostPort":1}'), '],"x":1.0}]}}'),
  ],
  [
    'integers of a list',
    pod,
    repeated('{"spec":{"securityContext":{"supplementalGroups":[', always('1'), ',1.0]}}}'),
  ],
  ['one long string', configMap, filled(`{${named},"data":{"a":"`, 'a', '"}}')],
  ['escapes', configMap, filled(`{${named},"data":{"a":"`, '\\n', '"}}')],
  ['half pairs', configMap, filled(`{${named},"data":{"a":"`, '\\ud800', '"}}')],
  ['escaped keys', configMap, repeated(`{${named},"data":{`, (i) => `"\\u0061${i}":""`, '}}')],
  ['spaces', configMap, filled(`{${named},"data":{"a":"b"}`, ' ', '}')],
  [
    'deep lists',
    configMap,
    (bytes) => Buffer.from(`{"x":${'['.repeat(bytes / 2)}${']'.repeat(bytes / 2)}}`),
  ],
  [
    'deep lists in turn',
    configMap,
    repeated('{"x":[', always(`${'['.repeat(90)}${']'.repeat(90)}`), ']}'),
  ],
  ['numbers of many digits', configMap, filled('{"x":', '1', '}')],
  ['exponents', configMap, repeated('{"x":[', always('1e9'), ']}')],
  ['a fault at the end of structs', pod, repeated('{"spec":{"containers":[', always('{}'), ']}')],
  ['a fault at the end of numbers', configMap, repeated('{"x":[', always('0'), ']]')],
  ['a fault at the end of a string', configMap, filled('{"data":{"a":"', 'a', '')],
  ['a fault at the end of spaces', configMap, filled('{', ' ', '')],
  ['a fault at the end of escapes', configMap, filled('{"a":"', '\\u0061', '\\x"}')],
  ['a wrong type at the end', pod, repeated('{"spec":{"containers":[', always('{}'), ',1]}}')],
  [
    'service ports',
    service,
    repeated(
      `{${named},"spec":{"ports":[`,
      (i) => `{"name":"p${i}","port":${1 + (i % 65535)}}`,
      ']}}',
    ),
  ],
  [
    'same service ports',
    service,
    repeated(`{${named},"spec":{"ports":[`, always('{"port":1}'), ']}}'),
  ],
  [
    'external addresses',
    service,
    repeated(`{${named},"spec":{"externalIPs":[`, always('"1.2.3.4"'), ']}}'),
  ],
  ['selector', service, repeated(`{${named},"spec":{"selector":{`, (i) => `"${i}":"x"`, '}}}')],
  ['base64', secret, filled(`{${named},"data":{"a":"`, 'AAAA', '"}}')],
  ['secret keys', secret, repeated(`{${named},"data":{`, (i) => `"${i}":"AA=="`, '}}')],
  [
    'endpoint addresses',
    endpoints,
    repeated(`{${named},"subsets":[{"addresses":[`, always('{"ip":"1.2.3.4"}'), ']}]}'),
  ],
  [
    'endpoint subsets',
    endpoints,
    repeated(
      `{${named},"subsets":[`,
      always('{"addresses":[{"ip":"1.2.3.4"}],"ports":[{"port":1}]}'),
      ']}',
    ),
  ],
  [
    'slice endpoints',
    slice,
    repeated(
      `{${named},"addressType":"IPv4","endpoints":[`,
      always('{"addresses":["1.2.3.4"]}'),
      ']}',
    ),
  ],
  [
    'rules',
    role,
    repeated(
      `{${named},"rules":[`,
      always('{"verbs":["get"],"resources":["pods"],"apiGroups":[""]}'),
      ']}',
    ),
  ],
  [
    'verbs',
    role,
    repeated(
      `{${named},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":[`,
      (i) => `"${i}"`,
      ']}]}',
    ),
  ],
  [
    'rule products',
    role,
    (bytes) => {
      const list = JSON.stringify(
        Array.from({ length: Math.max(1, bytes / 20) }, (_, i) => String(i)),
      )
      return Buffer.from(
        `{${named},"rules":[{"apiGroups":${list},"resources":${list},"verbs":${list}}]}`,
      )
    },
  ],
  [
    'request of letters',
    csr,
    (bytes) =>
      Buffer.from(
        JSON.stringify({
          metadata: { name: 'a' },
          spec: {
            signerName: 'a.b/c',
            request: Buffer.from(
              '-----BEGIN CERTIFICATE REQUEST-----\n'.repeat(bytes / 60),
            ).toString('base64'),
            usages: ['client auth'],
          },
        }),
      ),
  ],
  [
    'usages',
    csr,
    repeated(
      `{${named},"spec":{"signerName":"a.b/c","request":"AA==","usages":[`,
      always('"client auth"'),
      ']}}',
    ),
  ],
  [
    'own review',
    accessReview,
    filled('{"spec":{"resourceAttributes":{"verb":"get","name":"', 'a', '"}}}'),
  ],
  [
    'own review with selectors',
    accessReview,
    repeated(
      '{"spec":{"resourceAttributes":{"verb":"list","labelSelector":{"requirements":[',
      always('{"key":"a","operator":"Exists"}'),
      ']}}}}',
    ),
  ],
  [
    'groups of a review',
    subjectReview,
    repeated(
      '{"spec":{"user":"a","resourceAttributes":{"verb":"get"},"groups":[',
      (i) => `"g${i}"`,
      ']}}',
    ),
  ],
  [
    'extra of a review',
    subjectReview,
    repeated(
      '{"spec":{"user":"a","resourceAttributes":{"verb":"get"},"extra":{',
      (i) => `"${i}":["a"]`,
      '}}}',
    ),
  ],
  ['token', tokenReview, filled('{"spec":{"token":"', 'a.', '"}}')],
  ['audiences', tokenReview, repeated('{"spec":{"token":"a","audiences":[', always('"a"'), ']}}')],
]

/** Bodies that only YAML has. */
const yamlRows: readonly Row[] = [
  ['block mappings', configMap, filled('metadata:\n  name: a\ndata:\n', '  a: b\n', '')],
  [
    'block keys',
    configMap,
    (bytes) =>
      Buffer.from(
        `metadata:\n  name: a\ndata:\n${Array.from({ length: bytes / 9 }, (_, i) => `  k${i}: b\n`).join('')}`,
      ),
  ],
  ['block sequences', configMap, filled('x:\n', '- a\n', '')],
  ['block scalars', configMap, filled('data:\n  a: |\n', '    a\n', '')],
  ['folded scalars', configMap, filled('data:\n  a: >\n', '    a\n\n', '')],
  ['plain scalars of many lines', configMap, filled('data:\n  a: a\n', '    a\n', '')],
  ['quoted scalars of many lines', configMap, filled('data:\n  a: "', 'a\n    ', '"')],
  ['comments', configMap, filled('data: {}\n', '# a\n', '')],
  ['comments in a flow', configMap, filled('data: {\n', '# a\n', '}')],
  ['empty lines', configMap, filled('data: {}', '\n', '')],
  ['spaces in a flow', configMap, filled('data: {', ' ', '}')],
  ['anchors', configMap, filled('x:\n', '- &a a\n', '')],
  ['aliases', configMap, filled('a: &a [a]\nx:\n', '- *a\n', '')],
  [
    'nested aliases',
    configMap,
    () =>
      Buffer.from(
        `a0: &a0 [x,x,x,x]\n${Array.from({ length: 18 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i},*a${i}]\n`).join('')}`,
      ),
  ],
  ['merge keys', configMap, filled('a: &a {b: c}\nx:\n', '- <<: *a\n', '')],
  ['tags', configMap, filled('x:\n', '- !!str a\n', '')],
  ['unknown tags', configMap, filled('x:\n', '- !a a\n', '')],
  ['explicit keys', configMap, filled('x:\n', '  ? a\n', '')],
  ['documents', configMap, filled('', '---\na: b\n', '')],
  ['directives', configMap, filled('', '%A a\n', '---\na: b\n')],
  ['deep flow', configMap, (bytes) => Buffer.from('['.repeat(bytes))],
  ['deep block sequences', configMap, (bytes) => Buffer.from('- '.repeat(bytes / 2))],
  [
    'deep block mappings',
    configMap,
    (bytes) => {
      const depth = Math.min(95, Math.floor(Math.sqrt(bytes)))
      return Buffer.from(Array.from({ length: depth }, (_, i) => `${' '.repeat(i)}a:\n`).join(''))
    },
  ],
  ['flow pairs', configMap, filled('x: [', 'a: b, ', ']')],
  ['flow keys without values', configMap, filled('x: {', 'a, ', '}')],
  ['commas', configMap, filled('x: [', ',', ']')],
  ['colons', configMap, filled('x: [', ': ', ']')],
  ['faults', configMap, filled('x: ', '} ', '')],
  ['tabs', configMap, filled('x:\n', '\t- a\n', '')],
  ['quotes', configMap, filled("x: '", "''", "'")],
  ['a quote without end', configMap, filled('x: "', 'a ', '')],
  ['numbers', configMap, filled('x: [', '0x1_0, ', ']')],
  ['long number', configMap, filled('x: ', '1', '')],
  ['long octal number', configMap, filled('x: 0', '1', '')],
  ['long underscores', configMap, filled('x: 1', '_', 'x')],
  ['invalid at the end', configMap, filled('data:\n', '  a: b\n', '   c: d\n- e')],
]

/** A length-delimited field of a protobuf message. */
function field(number: number, content: Buffer | string): Buffer {
  const bytes = Buffer.from(content)
  return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes])
}

function varint(value: number): Buffer {
  const out: number[] = []
  let rest = value
  for (; rest > 127; rest = Math.floor(rest / 128)) out.push((rest % 128) | 128)
  out.push(rest)
  return Buffer.from(out)
}

const envelope = ({ group, version, kind }: InputKind, message: Buffer): Buffer =>
  Buffer.concat([
    Buffer.from('k8s\0'),
    field(1, Buffer.concat([field(1, group ? `${group}/${version}` : version), field(2, kind)])),
    field(2, message),
  ])

const many = (item: Buffer, bytes: number): Buffer =>
  Buffer.concat(Array.from({ length: Math.max(1, Math.floor(bytes / item.length)) }, () => item))

const manyOf = (item: (index: number) => Buffer, bytes: number): Buffer => {
  const size = item(0).length
  return Buffer.concat(
    Array.from({ length: Math.max(1, Math.floor(bytes / size)) }, (_, i) => item(i)),
  )
}

const meta = field(1, field(1, 'a'))

/** Bodies that are protobuf messages. */
const protobufRows: readonly (readonly [string, InputKind, (bytes: number) => Buffer])[] = [
  ['empty structs', pod, (bytes) => field(2, many(field(2, ''), bytes))],
  ['empty volumes', pod, (bytes) => field(2, many(field(1, ''), bytes))],
  ['a struct merged many times', pod, (bytes) => many(field(2, ''), bytes)],
  ['unknown fields', configMap, (bytes) => many(Buffer.from([0xf8, 0x07, 0x01]), bytes)],
  [
    'unknown groups',
    configMap,
    (bytes) => Buffer.concat([meta, many(Buffer.from([0xfb, 0x07, 0xfc, 0x07]), bytes)]),
  ],
  [
    'map entries',
    configMap,
    (bytes) =>
      Buffer.concat([
        meta,
        manyOf((i) => field(2, Buffer.concat([field(1, `k${1e6 + i}`), field(2, '')])), bytes),
      ]),
  ],
  ['same map entry', configMap, (bytes) => Buffer.concat([meta, many(field(2, ''), bytes)])],
  [
    'one long string',
    configMap,
    (bytes) =>
      Buffer.concat([meta, field(2, Buffer.concat([field(1, 'a'), field(2, 'a'.repeat(bytes))]))]),
  ],
  [
    'invalid UTF-8 at the end',
    configMap,
    (bytes) =>
      Buffer.concat([
        meta,
        field(
          2,
          Buffer.concat([
            field(1, 'a'),
            field(2, Buffer.concat([Buffer.alloc(bytes, 0x61), Buffer.from([0xff])])),
          ]),
        ),
      ]),
  ],
  [
    'endpoint addresses',
    endpoints,
    (bytes) => Buffer.concat([meta, field(2, many(field(1, ''), bytes))]),
  ],
  ['rules', role, (bytes) => Buffer.concat([meta, many(field(2, ''), bytes)])],
  [
    'raw JSON',
    configMap,
    (bytes) =>
      field(
        1,
        Buffer.concat([
          field(1, 'a'),
          many(field(17, field(7, field(1, '{"a":[{},{},{},{}]}'))), bytes),
        ]),
      ),
  ],
  ['times', configMap, (bytes) => field(1, many(field(8, Buffer.from([8, 1, 16, 1])), bytes))],
  ['groups of a review', subjectReview, (bytes) => field(2, many(field(4, 'g'), bytes))],
]

/** A text of each sort of value that validation may stumble over. */
const itemsOf = (field: FieldSchema): readonly ((index: number) => string)[] => {
  if (field.map) return [(i) => `"-${i}":${field.type === 'string' ? '"-"' : '{}'}`]
  if (field.type === 'object') return [always('{}')]
  if (field.type === 'string') return [always('"-"'), (i) => `"a${i}"`]
  return [always('1')]
}

/** The path to every list and map inside a struct, and what may stand there. */
function* fieldsWithMany(
  struct: StructSchema,
  before: string,
  after: string,
  trail: readonly StructSchema[],
): Generator<{ path: string; make: (bytes: number) => Buffer }> {
  for (const field of struct.fields()) {
    const start = `${before}{"${field.jsonName}":`
    const end = `}${after}`
    if (field.list || field.map) {
      const [open, close] = field.map ? ['{', '}'] : ['[', ']']
      for (const [at, item] of itemsOf(field).entries())
        yield { path: `${field.jsonName}${at}`, make: repeated(start + open, item, close + end) }
    }
    if (field.struct === undefined || field.map || trail.includes(field.struct)) continue
    const [open, close] = field.list ? ['[', ']'] : ['', '']
    const deeper = fieldsWithMany(field.struct, start + open, close + end, [...trail, struct])
    for (const { path, make } of deeper) yield { path: `${field.jsonName}.${path}`, make }
  }
}

/** For every list and map of every kind, an object that has very many entries there. */
export function* schemaBodies(kinds: Iterable<InputKind>): Generator<CostlyBody> {
  for (const kind of kinds) {
    const struct = schemaOf(kind)
    if (struct === undefined) continue
    for (const { path, make } of fieldsWithMany(struct, '', '', []))
      yield { name: `${kind.kind}.${path}`, encoding: 'application/json', kind, make }
  }
}

/** Every costly body in every encoding. */
export const costlyBodies: readonly CostlyBody[] = [
  ...jsonRows.map(
    ([name, kind, make]): CostlyBody => ({ name, encoding: 'application/json', kind, make }),
  ),
  ...jsonRows.map(
    ([name, kind, make]): CostlyBody => ({
      name: `${name} (flow)`,
      encoding: 'application/yaml',
      kind,
      make,
    }),
  ),
  ...yamlRows.map(
    ([name, kind, make]): CostlyBody => ({ name, encoding: 'application/yaml', kind, make }),
  ),
  ...protobufRows.map(
    ([name, kind, make]): CostlyBody => ({
      name,
      encoding: 'application/vnd.kubernetes.protobuf',
      kind,
      make: (bytes) => envelope(kind, make(bytes)),
    }),
  ),
]

/** Packed as small as gzip can. */
export const packed = (body: Buffer): Buffer => gzipSync(body, { level: 9 })

/** A patch that costs much, and the object that it is applied to. */
export interface CostlyPatch {
  readonly name: string
  readonly type: 'json' | 'merge' | 'strategic'
  readonly kind: InputKind
  readonly original: Record<string, unknown>
  readonly make: (bytes: number) => Buffer
}

const keyed = (count: number, value: unknown = ''): Record<string, unknown> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, value]))

const object = (kind: InputKind, more: object): Record<string, unknown> => ({
  apiVersion: kind.group ? `${kind.group}/${kind.version}` : kind.version,
  kind: kind.kind,
  metadata: { name: 'a', namespace: 'default' },
  ...more,
})

const smallMap = object(configMap, { data: { a: 'b' } })
const largeMap = object(configMap, { data: keyed(8_000) })
const longText = object(configMap, { data: { a: 'a'.repeat(1_000_000) } })
const manyOwners = object(configMap, {
  metadata: {
    name: 'a',
    namespace: 'default',
    finalizers: Array.from({ length: 5_000 }, (_, i) => `a.b/${i}`),
  },
})
const env = Array.from({ length: 3_000 }, (_, i) => ({ name: `n${i}`, value: '' }))
const largePod = object(pod, { spec: { containers: [{ name: 'c', image: 'i', env }] } })

type PatchRow = readonly [
  name: string,
  kind: InputKind,
  original: Record<string, unknown>,
  make: (bytes: number) => Buffer,
]

const operations = (item: (index: number) => string): ((bytes: number) => Buffer) =>
  repeated('[', item, ']')

const jsonPatches: readonly PatchRow[] = [
  ['tests', configMap, smallMap, operations(always('{"op":"test","path":"/data/a","value":"b"}'))],
  [
    'tests of a large map',
    configMap,
    largeMap,
    operations(always('{"op":"test","path":"/x","value":null}')),
  ],
  [
    'tests of a long text',
    configMap,
    longText,
    operations(always('{"op":"test","path":"/data/b"}')),
  ],
  [
    'copies that double',
    configMap,
    smallMap,
    operations((i) => `{"op":"copy","from":"/data","path":"/data/${i}"}`),
  ],
  [
    'copies of a large map',
    configMap,
    largeMap,
    operations((i) => `{"op":"copy","from":"/data","path":"/x${i}"}`),
  ],
  [
    'copies of a long text',
    configMap,
    longText,
    operations((i) => `{"op":"copy","from":"/data/a","path":"/data/${i}"}`),
  ],
  [
    'moves to and fro',
    configMap,
    largeMap,
    operations((i) =>
      i % 2
        ? '{"op":"move","from":"/x","path":"/data"}'
        : '{"op":"move","from":"/data","path":"/x"}',
    ),
  ],
  [
    'additions to the front of a list',
    configMap,
    manyOwners,
    operations(always('{"op":"add","path":"/metadata/finalizers/0","value":"a/b"}')),
  ],
  [
    'removals from a list',
    configMap,
    manyOwners,
    operations(always('{"op":"remove","path":"/metadata/finalizers/0"}')),
  ],
  ['a long path', configMap, smallMap, filled('[{"op":"test","path":"', '/a', '"}]')],
  ['escapes in a path', configMap, smallMap, filled('[{"op":"test","path":"/', '~1~0', '"}]')],
  ['long steps', configMap, smallMap, filled('[{"op":"add","path":"/data/', 'a', '","value":""}]')],
  [
    'values',
    configMap,
    smallMap,
    repeated('[{"op":"add","path":"/data","value":{', (i) => `"${i}":""`, '}}]'),
  ],
  [
    'values that replace each other',
    configMap,
    smallMap,
    operations(always('{"op":"add","path":"/data","value":{"a":"","b":"","c":"","d":""}}')),
  ],
  ['empty operations', configMap, smallMap, operations(always('{}'))],
  ['unknown operations', configMap, smallMap, operations(always('{"op":"x","path":""}'))],
  ['not operations', configMap, smallMap, operations(always('0'))],
  [
    'deep values',
    configMap,
    smallMap,
    (bytes) =>
      Buffer.from(
        `[{"op":"add","path":"/x","value":${'['.repeat(Math.min(950, bytes / 2))}${']'.repeat(Math.min(950, bytes / 2))}}]`,
      ),
  ],
]

/** The same, whatever size is asked for. */
function fixed(text: string): () => Buffer {
  return () => Buffer.from(text)
}

const mergePatches: readonly PatchRow[] = [
  ['keys', configMap, smallMap, repeated('{"data":{', (i) => `"${i}":""`, '}}')],
  ['nulls', configMap, largeMap, repeated('{"data":{', (i) => `"k${i}":null`, '}}')],
  ['one key of a large map', configMap, largeMap, fixed('{"data":{"x":""}}')],
  ['one key of a long text', configMap, longText, fixed('{"data":{"x":""}}')],
  ['unknown keys', configMap, smallMap, repeated('{', (i) => `"${i}":{}`, '}')],
  ['duplicate keys', configMap, smallMap, repeated('{', always('"data":{}'), '}')],
  ['empty structs', pod, largePod, repeated('{"spec":{"containers":[', always('{}'), ']}}')],
  [
    'deep objects',
    configMap,
    smallMap,
    (bytes) =>
      Buffer.from(
        `${'{"a":'.repeat(Math.min(990, bytes / 6))}0${'}'.repeat(Math.min(990, bytes / 6))}`,
      ),
  ],
  ['not an object', configMap, smallMap, repeated('[', always('0'), ']')],
]

const strategicPatches: readonly PatchRow[] = [
  [
    'one element many times',
    pod,
    largePod,
    repeated('{"spec":{"containers":[', always('{"name":"c","env":[{"name":"n1"}]}'), ']}}'),
  ],
  [
    'elements',
    pod,
    largePod,
    repeated('{"spec":{"containers":[{"name":"c","env":[', (i) => `{"name":"n${i}"}`, ']}]}}'),
  ],
  [
    'an order of elements',
    pod,
    largePod,
    repeated(
      '{"spec":{"containers":[{"name":"c","$setElementOrder/env":[',
      (i) => `{"name":"n${i}"}`,
      ']}]}}',
    ),
  ],
  ['orders', pod, largePod, repeated('{"spec":{', (i) => `"$setElementOrder/x${i}":[]`, '}}')],
  [
    'an order that does not match',
    pod,
    largePod,
    repeated(
      '{"spec":{"containers":[{"name":"z"}],"$setElementOrder/containers":[',
      (i) => `{"name":"${i}"}`,
      ']}}',
    ),
  ],
  [
    'deletions',
    pod,
    largePod,
    repeated(
      '{"spec":{"containers":[{"name":"c","env":[',
      (i) => `{"name":"n${i}","$patch":"delete"}`,
      ']}]}}',
    ),
  ],
  [
    'deletions from a list of texts',
    configMap,
    manyOwners,
    repeated('{"metadata":{"$deleteFromPrimitiveList/finalizers":[', (i) => `"a.b/${i}"`, ']}}'),
  ],
  [
    'texts',
    configMap,
    manyOwners,
    repeated('{"metadata":{"finalizers":[', (i) => `"a.b/x${i}"`, ']}}'),
  ],
  ['keys to retain', pod, largePod, repeated('{"spec":{"$retainKeys":[', (i) => `"${i}"`, ']}}')],
  [
    'replacements',
    pod,
    largePod,
    repeated(
      '{"spec":{"containers":[{"$patch":"replace"},',
      (i) => `{"name":"c${i}","image":"i"}`,
      ']}}',
    ),
  ],
  [
    'unknown directives',
    pod,
    largePod,
    repeated('{"spec":{"containers":[', always('{"$patch":"x"}'), ']}}'),
  ],
  ['one value of a large object', pod, largePod, fixed('{"metadata":{"labels":{"a":"b"}}}')],
  [
    'no merge key',
    pod,
    largePod,
    repeated('{"spec":{"containers":[', always('{"image":"i"}'), ']}}'),
  ],
]

const rowsOf = (type: CostlyPatch['type'], rows: readonly PatchRow[]): CostlyPatch[] =>
  rows.map(([name, kind, original, make]) => ({ name, type, kind, original, make }))

/** Every costly patch of every type. */
export const costlyPatches: readonly CostlyPatch[] = [
  ...rowsOf('json', jsonPatches),
  ...rowsOf('merge', mergePatches),
  ...rowsOf('strategic', strategicPatches),
]
