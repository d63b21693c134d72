import { cpuUsage } from 'node:process'
import { expect, test } from 'vitest'
import type { KubeObject } from '../../core/index.ts'
import { checkStructure, schemaOf } from '../schema/index.ts'
import { renderTable } from '../serving/table.ts'
import { causesOf, validateCreate, validateUpdate } from '../validation/index.ts'
import { kindDefinitions } from './index.ts'

const many = (count: number, item: (index: number) => unknown) =>
  Array.from({ length: count }, (_, index) => item(index))

const podWith = (container: object, spec: object = {}) => ({
  spec: { ...spec, containers: [{ name: 'a', image: 'b', ...container }] },
})

/** Each took minutes or hours, in which the one thread of the server did nothing else. */
const hostile: readonly (readonly [what: string, kind: string, object: object])[] = [
  ['zeros that are no address', 'Service', { spec: { externalIPs: [`${'0'.repeat(200_000)}x.`] } }],
  [
    'zeros that are no range',
    'Service',
    { spec: { type: 'LoadBalancer', loadBalancerSourceRanges: [`${'0'.repeat(200_000)}x.`] } },
  ],
  ['zeros that are no pod range', 'Node', { spec: { podCIDR: `${'0'.repeat(200_000)}x.` } }],
  [
    'brackets in a field path',
    'Pod',
    podWith({
      env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: "['".repeat(200_000) } } }],
    }),
  ],
  [
    'usages of a certificate',
    'CertificateSigningRequest',
    { spec: { usages: many(100_000, (index) => `u${index}`) } },
  ],
  ['empty containers', 'Pod', { spec: { containers: many(16_000, () => ({})) } }],
  [
    'labels',
    'ConfigMap',
    { metadata: { labels: Object.fromEntries(many(100_000, (i) => [`!${i}`, '!']) as []) } },
  ],
  ['families of addresses', 'Service', { spec: { ipFamilies: many(100_000, (i) => `f${i}`) } }],
  [
    'tolerations',
    'Pod',
    podWith({}, { tolerations: many(30_000, (i) => ({ key: `k${i}`, operator: 'Exists' })) }),
  ],
  [
    'addresses with ports',
    'Endpoints',
    {
      subsets: [
        {
          addresses: many(8_000, () => ({ ip: '10.0.0.1' })),
          ports: many(8_000, (i) => ({ name: `p${i}`, port: 1 })),
        },
      ],
    },
  ],
  [
    'a role of billions of rights',
    'Role',
    {
      rules: [
        {
          apiGroups: many(2_000, () => ''),
          resources: many(2_000, () => 'pods'),
          verbs: many(2_000, () => 'get'),
        },
      ],
    },
  ],
]

test.each(hostile)('%s in a %s cost little', (_what, kind, object) => {
  const definition = kindDefinitions.find((each) => each.kind.kind === kind)
  const schema = definition && schemaOf(definition.kind)
  if (!definition || !schema) throw new Error(`no kind ${kind}`)
  const namespace = definition.kind.namespaced ? { namespace: 'a' } : {}
  const { metadata, ...parts }: { metadata?: object } = object
  const sent = { metadata: { name: 'a', ...namespace, ...metadata }, ...parts }
  const clock = { now: () => 0, monotonic: () => 0 }
  const context = { user: { username: 'ann', groups: [] }, clock }
  const began = cpuUsage()
  const draft = checkStructure(sent, schema).object as unknown as KubeObject
  definition.applyDefaults(draft)
  definition.prepareCreate(draft, context)
  causesOf(validateCreate(definition, draft))
  const changed = structuredClone(draft)
  definition.prepareUpdate(changed, draft, context)
  causesOf(validateUpdate(definition, changed, draft))
  renderTable(definition, [draft], {
    includeObject: 'None',
    listMeta: {},
    now: 0,
    includeHeaders: true,
  })
  // Not by the clock: others use this machine as well.
  expect(cpuUsage(began).user / 1_000).toBeLessThan(3_000)
})
