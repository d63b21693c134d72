import { type Case, media, post, put, type Topic } from '../ask.ts'
import { configMaps } from '../kinds.ts'

const head = '"apiVersion":"v1","kind":"ConfigMap"'
const pods = '/api/v1/namespaces/{ns}/pods'

const texts: Readonly<Record<string, readonly [path: string, body: string]>> = {
  'an unknown field at the top': [configMaps, `{${head},"metadata":{"name":"a"},"x":1}`],
  'an unknown field in metadata': [configMaps, `{${head},"metadata":{"name":"a","x":1}}`],
  'several unknown fields': [
    configMaps,
    `{${head},"metadata":{"name":"a","x":1},"y":{"z":1},"w":[]}`,
  ],
  'a duplicate field': [configMaps, `{${head},"metadata":{"name":"a"},"data":{},"data":{"b":"1"}}`],
  'a duplicate key in a map': [
    configMaps,
    `{${head},"metadata":{"name":"a"},"data":{"b":"1","b":"2"}}`,
  ],
  'duplicate metadata': [configMaps, `{${head},"metadata":{"name":"a"},"metadata":{"name":"b"}}`],
  'a duplicate name': [configMaps, `{${head},"metadata":{"name":"a","name":"b"}}`],
  'unknown and duplicate': [configMaps, `{${head},"metadata":{"name":"a","name":"b"},"x":1,"x":2}`],
  'a field in other case': [configMaps, `{${head},"metadata":{"name":"a"},"Data":{"b":"1"}}`],
  'fields in a list': [
    pods,
    '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"x":1,"containers":[{"name":"a","image":"b","y":1,"env":[{"name":"A","z":1}],"image":"c"}]}}',
  ],
  'more than there is room for': [
    configMaps,
    `{${head},"metadata":{"name":"a"},${Array.from({ length: 30 }, (_, n) => `"x${n}":1`).join(',')}}`,
  ],
}

const levels = ['Ignore', 'Warn', 'Strict']

const jsonCases: Case[] = Object.entries(texts).map(([name, [path, body]]) => ({
  name,
  steps: levels.map((level) => post(`${path}?dryRun=All&fieldValidation=${level}`, body)),
}))

const yamlBody =
  'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  name: b\nx: 1\ndata:\n  a: "1"\n  a: "2"\n'

/** Unknown and duplicate fields at all three levels. */
export const fieldValidation: Topic = {
  name: 'field validation',
  cases: [
    ...jsonCases,
    {
      name: 'YAML',
      steps: levels.map((level) =>
        post(`${configMaps}?dryRun=All&fieldValidation=${level}`, yamlBody, { type: media.yaml }),
      ),
    },
    {
      name: 'the level itself',
      steps: [
        post(`${configMaps}?dryRun=All`, `{${head},"metadata":{"name":"a"},"x":1}`),
        post(
          `${configMaps}?dryRun=All&fieldValidation=`,
          `{${head},"metadata":{"name":"a"},"x":1}`,
        ),
        post(`${configMaps}?dryRun=All&fieldValidation=Nonsense`, `{${head}}`),
        post(`${configMaps}?dryRun=All&fieldValidation=strict`, `{${head}}`),
        put(`${configMaps}/a?fieldValidation=Nonsense`, `{${head}}`),
      ],
    },
    {
      name: 'updates',
      steps: [
        post(configMaps, `{${head},"metadata":{"name":"updated"}}`),
        ...levels.map((level) =>
          put(
            `${configMaps}/updated?fieldValidation=${level}`,
            `{${head},"metadata":{"name":"updated"},"x":1}`,
          ),
        ),
      ],
    },
  ],
}
