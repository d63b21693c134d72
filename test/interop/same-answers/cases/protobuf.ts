import { readdirSync, readFileSync } from 'node:fs'
import { type Case, del, media, post, type Topic } from '../ask.ts'
import { collectionOf, configMap, configMaps, storedKinds } from '../kinds.ts'

const folder = new URL('../../../fixtures/generated/protobuf/', import.meta.url)
const options = { type: media.protobuf }
const reviews: Readonly<Record<string, string>> = {
  tokenreview: '/apis/authentication.k8s.io/v1/tokenreviews',
  selfsubjectreview: '/apis/authentication.k8s.io/v1/selfsubjectreviews',
  subjectaccessreview: '/apis/authorization.k8s.io/v1/subjectaccessreviews',
  selfsubjectaccessreview: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
  selfsubjectrulesreview: '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews',
  localsubjectaccessreview:
    '/apis/authorization.k8s.io/v1/namespaces/{ns}/localsubjectaccessreviews',
}

const pathOf = (fixture: string): string | undefined => {
  const name = fixture.replace(/-empty$/, '')
  const kind = storedKinds.find((one) => one.kind.toLowerCase() === name)
  return kind ? `${collectionOf(kind)}?dryRun=All` : reviews[name]
}

const bytesOf = (fixture: string): Buffer => readFileSync(new URL(`${fixture}.pb`, folder))

const fixtures = readdirSync(folder)
  .filter((file) => file.endsWith('.pb'))
  .map((file) => file.slice(0, -'.pb'.length))

const withoutRules = (json: unknown): unknown => ({ ...(json as object), status: '' })

const decoded: Case[] = fixtures.flatMap((fixture) => {
  const path = pathOf(fixture)
  if (path === undefined) return []
  // Which rules there are hangs together with the default roles.
  const view = fixture === 'selfsubjectrulesreview' ? { view: withoutRules } : {}
  return [{ name: fixture, steps: [post(path, bytesOf(fixture), options)], ...view }]
})

const whole = bytesOf('configmap')
const broken: Case[] = [5, 20, 60, Math.floor(whole.length / 2), whole.length - 1].map(
  (length) => ({
    name: `a ConfigMap cut after ${length} bytes`,
    steps: [post(`${configMaps}?dryRun=All`, whole.subarray(0, length), options)],
  }),
)

/** Bodies in protobuf. */
export const protobuf: Topic = {
  name: 'protobuf',
  cases: [
    ...decoded,
    ...broken,
    {
      name: 'DeleteOptions',
      steps: [
        post(configMaps, configMap('deleted')),
        del(`${configMaps}/deleted`, bytesOf('deleteoptions'), options),
        del(`${configMaps}/deleted`, bytesOf('deleteoptions-empty'), options),
        del(`${configMaps}?labelSelector=none`, bytesOf('deleteoptions-empty'), options),
      ],
    },
    {
      name: 'another kind than the URL says',
      steps: [
        post(configMaps, bytesOf('secret'), options),
        post(configMaps, bytesOf('status'), options),
      ],
    },
  ],
}
