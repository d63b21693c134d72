import { type Case, cases, media, post, put, type Topic } from '../ask.ts'
import { configMap, configMaps } from '../kinds.ts'

const text = JSON.stringify(configMap('text'))
const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
const withData = (value: string): string =>
  `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"shapes"},"data":${value}}`

/** One dry run per body, so that none needs the others gone. */
const bodies = (type: string, rows: Readonly<Record<string, unknown>>): Case[] =>
  Object.entries(rows).map(([name, body]) => ({
    name: `${type || 'no type'}: ${name}`,
    steps: [post(`${configMaps}?dryRun=All`, body, { type })],
  }))

/** Bodies in JSON and YAML, broken in many ways. */
export const brokenBodies: Topic = {
  name: 'bodies',
  cases: [
    ...bodies(media.json, {
      good: text,
      'with a byte order mark': `\ufeff${text}`,
      'with space around': `\n  ${text}\n\n`,
      empty: '',
      'only space': '   \n',
      truncated: text.slice(0, 40),
      'truncated inside a name': '{"apiVer',
      'something after it': `${text}x`,
      'two objects': text + text,
      null: 'null',
      'a number': '5',
      text: '"x"',
      'a list': `[${text}]`,
      true: 'true',
      'single quotes': "{'kind':'ConfigMap'}",
      'a trailing comma': '{"kind":"ConfigMap",}',
      'a comment': '{/* x */}',
      'bare words': '{kind:ConfigMap}',
      'a control character in text': '{"kind":"Config\u0001Map"}',
      'a bad escape': '{"kind":"Config\\xMap"}',
      'a bad number': '{"kind":"ConfigMap","x":01}',
      'a lone surrogate': '{"kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"\\ud800"}}',
      NaN: '{"kind":NaN}',
      'not UTF-8': Buffer.from([
        ...Buffer.from(text.slice(0, -3)),
        0xff,
        0xfe,
        ...Buffer.from('"}}'),
      ]),
      'not UTF-8 in a value': Buffer.concat([
        Buffer.from(
          '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"latin"},"data":{"a":"',
        ),
        Buffer.from([0xe9]),
        Buffer.from('"}}'),
      ]),
      'zero bytes': Buffer.from([0, 0, 0, 0]),
      YAML: 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yaml-as-json}\n',
      'nested deeply in an unknown field': `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"deep"},"x":${nested(5_000)}}`,
      'nested far too deeply': nested(200_000),
      'metadata as a list': '{"kind":"ConfigMap","apiVersion":"v1","metadata":[]}',
      'metadata as text': '{"kind":"ConfigMap","apiVersion":"v1","metadata":"x"}',
      'name as a number': '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":5}}',
      'name as an object': '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":{}}}',
      'labels as a list': '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"labels":[]}}',
      'a label as a number': '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"labels":{"a":1}}}',
      'creationTimestamp as text':
        '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"creationTimestamp":"yesterday"}}',
      'creationTimestamp as a number':
        '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"creationTimestamp":5}}',
      'generation as text': '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"generation":"5"}}',
      'generation with a fraction':
        '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"generation":1.5}}',
      'generation too large':
        '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"generation":100000000000000000000}}',
      'finalizers as text': '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"finalizers":"x"}}',
      'finalizers with numbers':
        '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"finalizers":[5]}}',
      'kind as a number': '{"kind":5,"apiVersion":"v1"}',
      'apiVersion as a list': '{"kind":"ConfigMap","apiVersion":[]}',
      'data as a list': withData('[]'),
      'data as text': withData('"x"'),
      'data as a number': withData('5'),
      'data with a number': withData('{"a":5}'),
      'data with true': withData('{"a":true}'),
      'data with an object': withData('{"a":{}}'),
      'data with a list': withData('{"a":[]}'),
      'immutable as text':
        '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"i"},"immutable":"yes"}',
      'binaryData that is not base64':
        '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b"},"binaryData":{"a":"***"}}',
      'binaryData in the URL alphabet':
        '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b"},"binaryData":{"a":"_-8="}}',
      'binaryData without padding':
        '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b"},"binaryData":{"a":"AAE"}}',
      'binaryData null':
        '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b"},"binaryData":{"a":null}}',
    }),
    ...bodies(media.yaml, {
      good: 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: yaml\ndata:\n  a: "1"\n',
      JSON: text,
      empty: '',
      'a comment only': '# nothing\n',
      'a tab': 'kind:\tConfigMap\n\tdata: x\n',
      broken: 'kind: [ConfigMap\n',
      'a number where text belongs':
        'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: yaml\ndata:\n  a: 1\n',
      'yes where text belongs':
        'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: yaml\ndata:\n  a: yes\n',
      'a name that is a number': 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: 5\n',
      anchors: 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: &n anchored\ndata:\n  a: *n\n',
      'an unknown anchor': 'kind: *none\n',
      'two documents':
        'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first}\n---\nkind: Secret\n',
      'a document marker': '---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: marked}\n',
      'a list': '- a\n- b\n',
      text: 'just text\n',
      'keys twice':
        'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: twice}\ndata:\n  a: "1"\n  a: "2"\n',
      'a multi-line text':
        'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lines}\ndata:\n  a: |\n    one\n    two\n',
      'a number as key':
        'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: keys}\ndata:\n  1: "x"\n',
      'unknown fields': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: unknown, x: 1}\ny: 2\n',
    }),
    ...bodies('', { 'JSON without a type': text }),
    ...bodies('text/plain', { JSON: text }),
    ...bodies('application/xml', { XML: '<a/>' }),
    ...bodies('nonsense', { JSON: text }),
    ...bodies('application/json; charset=utf-8', { JSON: text }),
    ...bodies('application/json; charset=latin1', { JSON: text }),
    ...bodies('APPLICATION/JSON', { JSON: text }),
    ...bodies('application/json, text/plain', { JSON: text }),
    ...bodies('application/*', { JSON: text }),
    ...bodies('application/json;as=Table;v=v1;g=meta.k8s.io', { JSON: text }),
    ...bodies(media.mergePatch, { 'a patch type': text }),
    ...bodies(media.protobuf, {
      empty: '',
      JSON: text,
      'only the prefix': Buffer.from('k8s\u0000'),
      'the prefix and nonsense': Buffer.from('k8s\u0000nonsense'),
      'a truncated prefix': Buffer.from('k8'),
    }),
    ...cases({
      'too large': post(
        `${configMaps}?dryRun=All`,
        configMap('huge', { data: { a: 'x'.repeat(3_200_000) } }),
      ),
      'too large for a ConfigMap': post(
        `${configMaps}?dryRun=All`,
        configMap('large', { data: { a: 'x'.repeat(1_048_577) } }),
      ),
      'a PUT that is broken': put(`${configMaps}/x`, '{'),
      'a PUT that is empty': put(`${configMaps}/x`, ''),
    }),
  ],
}
