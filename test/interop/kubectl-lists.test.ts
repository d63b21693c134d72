import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  hasKubeApiserver,
  type KubeApiserverProcess,
  startKubeApiserver,
} from '../support/kube-apiserver-process.ts'
import { type Kubectl, kubectlAt, type Outcome } from '../support/kubectl.ts'
import { findKubectl, pathOrReason } from '../support/peers.ts'
import { type SallyportProcess, startSallyport } from '../support/sallyport-process.ts'

type Fields = Readonly<Record<string, unknown>>

const versions = ['1.36', '1.31'].map((version) => ({
  version,
  path: pathOrReason(findKubectl(version)),
}))
const here = hasKubeApiserver() && versions.some(({ path }) => path)

const list = (...items: readonly Fields[]): string =>
  JSON.stringify({ apiVersion: 'v1', kind: 'List', metadata: {}, items })

const labels = { app: 'lists' }
const configMap = (name: string, fields: Fields): Fields => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, labels },
  ...fields,
})
const service = (port: number): Fields => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web', labels },
  spec: {
    ports: [
      { name: 'one', port, targetPort: 'http' },
      { name: 'two', port: 443, targetPort: 8443 },
    ],
  },
})
const pod = (container: Fields): Fields => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', labels },
  spec: { containers: [{ name: 'c', image: 'i', ...container }] },
})
const binding = (fields: Fields): Fields => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'RoleBinding',
  metadata: { name: 'b', labels },
  ...fields,
})

const good = list(
  configMap('a', { data: { k: 'v' } }),
  service(80),
  binding({
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
    subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'jane' }],
  }),
)
const changed = list(configMap('a', { data: { k: 'w' } }), service(81))

/** What an item may have wrong, as kubectl finds it by the definitions of OpenAPI v2. */
const wrong: Readonly<Record<string, string>> = {
  'an unknown field': list(configMap('ok', {}), configMap('x', { datta: { k: 'v' } })),
  'unknown fields in two items': list(configMap('x', { datta: {} }), configMap('y', { dat: {} })),
  'an unknown field deep inside': list(pod({ ports: [{ containerPort: 80, prot: 'TCP' }] })),
  'a value of another type': list(configMap('x', { data: { k: ['v'] } })),
  'a list for an object': list(configMap('x', { data: ['v'] })),
  'a number for a boolean': list(pod({ tty: 1 })),
  'a field that is missing': list(binding({ subjects: [] })),
  'a kind that nobody knows': list({ apiVersion: 'v1', kind: 'Nonsense', metadata: { name: 'x' } }),
  'an item without a kind': list({ apiVersion: 'v1', metadata: { name: 'x' } }),
}

/** Quantities and ports may be numbers or strings, although v2 calls them strings. */
const either = list(
  pod({
    resources: { limits: { cpu: 1, memory: '1Gi' } },
    livenessProbe: { httpGet: { port: 80 } },
  }),
)

describe.skipIf(!here)('kind: List is taken as by a kube-apiserver [GND-R65, GND-R90]', () => {
  let ours: SallyportProcess | undefined
  let theirs: KubeApiserverProcess | undefined
  let scratch = ''

  beforeAll(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'sallyport-lists-'))
    ours = await startSallyport()
    theirs = await startKubeApiserver([])
  })
  afterAll(async () => {
    await ours?.stop()
    await theirs?.stop()
    await rm(scratch, { recursive: true, force: true })
  })

  describe.each(versions.filter(({ path }) => path))('kubectl $version', ({ version, path }) => {
    let both: { readonly our: Kubectl; readonly their: Kubectl }
    const inNamespace = (line: string) => `-n lists-${version.replace('.', '-')} ${line}`

    beforeAll(async () => {
      const at = (name: string, kubeconfig = '') =>
        kubectlAt(path ?? '', kubeconfig, join(scratch, `${name}-${version}`))
      both = { our: at('ours', ours?.kubeconfig), their: at('theirs', theirs?.kubeconfig) }
      const namespace = `lists-${version.replace('.', '-')}`
      for (const kubectl of Object.values(both)) {
        await kubectl(`create namespace ${namespace}`)
        // A kube-apiserver without its controllers makes no account, and takes no Pod without one.
        const { code } = await kubectl.outcome(inNamespace('get serviceaccount default'))
        if (code !== 0) await kubectl.outcome(inNamespace('create serviceaccount default'))
      }
    })

    /** Without the time and process of kubectl's own log lines. */
    const steady = (outcome: Outcome): Outcome => ({
      ...outcome,
      stderr: outcome.stderr.replaceAll(/^([IWE])\d{4} [\d:.]+ +\d+ /gm, '$1 '),
    })

    /** The same line at both servers; it must end in the same way with the same words. */
    async function same(line: string, input?: string): Promise<Outcome> {
      const [our, their] = await Promise.all([
        both.our.outcome(inNamespace(line), input),
        both.their.outcome(inNamespace(line), input),
      ])
      expect(steady(our)).toEqual(steady(their))
      return our
    }

    test('apply creates what is in it, and finds nothing to change after', async () => {
      const created = await same('apply -f -', good)
      expect(created.stdout.match(/created$/gm)).toHaveLength(3)
      const unchanged = await same('apply -f -', good)
      expect(unchanged.stdout.match(/unchanged$/gm)).toHaveLength(3)
    })

    test('diff says what apply would change, and apply does so', async () => {
      expect(await same('diff -f -', good)).toMatchObject({ code: 0, stdout: '' })
      const marked = ({ stdout }: Outcome) => stdout.match(/^[+-] .*$/gm)
      const [our, their] = await Promise.all(
        [both.our, both.their].map((one) => one.outcome(inNamespace('diff -f -'), changed)),
      )
      expect(our?.code).toBe(1)
      expect(marked(our!)).toEqual(marked(their!))
      expect(marked(our!)).toContain('+    port: 81')
      const applied = await same('apply -f -', changed)
      expect(applied.stdout.match(/configured$/gm)).toHaveLength(2)
      const ports = await same(`get service web -o jsonpath='{.spec.ports[*].port}'`)
      expect(ports.stdout).toBe('81 443')
    })

    test('apply takes back what get -o yaml has written', async () => {
      const written = (kubectl: Kubectl) =>
        kubectl(inNamespace('get configmap,service,rolebinding -l app=lists -o yaml'))
      const outcomes = await Promise.all(
        [both.our, both.their].map(async (one) => {
          const text = await written(one)
          expect(text).toContain('kind: List')
          return one.outcome(inNamespace('apply -f -'), text)
        }),
      )
      expect(outcomes[0]).toEqual(outcomes[1])
      expect(outcomes[0]?.code).toBe(0)
    })

    test('create, also as a dry run, and delete take it', async () => {
      const fresh = list(configMap('c1', {}), configMap('c2', { data: { k: 'v' } }))
      await same('create --dry-run=server -f -', fresh)
      expect((await same('create -f -', fresh)).stdout.match(/created$/gm)).toHaveLength(2)
      expect((await same('create -f -', fresh)).stderr).toContain('already exists')
      expect((await same('delete -f -', fresh)).code).toBe(0)
    })

    test('a quantity and a port may be numbers or strings', async () => {
      expect((await same('create --dry-run=server -f -', either)).code).toBe(0)
    })

    test.each(Object.entries(wrong))('%s is refused in the same words', async (_name, input) => {
      for (const verb of ['apply', 'create'])
        expect((await same(`${verb} -f -`, input)).code).toBe(1)
    })

    test('nothing of a list with a wrong field is applied', async () => {
      expect((await same('apply -f -', wrong['an unknown field'])).stderr).toContain(
        'ValidationError(ConfigMap): unknown field "datta" in io.k8s.api.core.v1.ConfigMap',
      )
      expect((await same('get configmap ok')).stderr).toContain('not found')
    })

    test('without validation the server decides', async () => {
      const input = wrong['an unknown field']
      const warned = await same('create --dry-run=server --validate=warn -f -', input)
      expect(warned.stderr).toContain('Warning: unknown field "datta"')
      const ignored = await same('create --dry-run=server --validate=false -f -', input)
      expect(ignored).toMatchObject({ code: 0, stderr: '' })
    })

    test.each(['configmap', 'pod.spec.containers', 'service.spec.ports', 'role --recursive'])(
      'explain shows the fields of %s by OpenAPI v2',
      async (what) => {
        const line = `explain ${what} --output=plaintext-openapiv2`
        const [our, their] = await Promise.all([both.our(line), both.their(line)])
        const fields = (text: string) => text.match(/^ {3,}\w+\t<.*$/gm)
        expect(fields(our)).toEqual(fields(their))
        expect(fields(our)?.length).toBeGreaterThan(3)
      },
    )
  })
})
