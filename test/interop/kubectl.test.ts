import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { type Kubectl, kubectlAt, run } from '../support/kubectl.ts'
import { findKubectl, pathOrReason } from '../support/peers.ts'
import { type SallyportProcess, startSallyport } from '../support/sallyport-process.ts'

const versions = ['1.36', '1.31', '1.33'].map((version) => ({
  version,
  path: pathOrReason(findKubectl(version)),
}))

describe.each(versions.filter(({ version, path }) => path || version !== '1.33'))(
  'stock kubectl $version',
  ({ version, path }) => {
    let server: SallyportProcess
    let kubectl: Kubectl
    let scratch: string
    const there = path !== undefined
    const ns = `it-${version.replace('.', '-')}`

    beforeAll(async () => {
      if (!path) return
      scratch = await mkdtemp(join(tmpdir(), 'sallyport-kubectl-'))
      server = await startSallyport()
      kubectl = kubectlAt(path, server.kubeconfig, join(scratch, 'cache'))
      await kubectl(`create namespace ${ns}`)
    })
    afterAll(async () => {
      await server?.stop()
      if (scratch) await rm(scratch, { recursive: true, force: true })
    })

    const inNamespace = (line: string) => `-n ${ns} ${line}`

    test.skipIf(!there)(
      'version, cluster-info and raw health answer [GND-R44, GND-R90]',
      async () => {
        expect(await kubectl('version')).toMatch(/Server Version: v1\.\d+\.\d+/)
        expect(await kubectl('cluster-info')).toContain('Kubernetes control plane')
        expect(await kubectl('get --raw /readyz')).toBe('ok')
        expect(await kubectl('get --raw /readyz?verbose')).toContain('readyz check passed')
        expect(await kubectl('get --raw /metrics')).toContain('apiserver_request_total')
      },
    )

    test.skipIf(!there)(
      'create, replace and delete with --raw, which name no content type',
      async () => {
        const path = `/api/v1/namespaces/${ns}/configmaps`
        const object = (value: string) =>
          JSON.stringify({
            apiVersion: 'v1',
            kind: 'ConfigMap',
            metadata: { name: 'raw' },
            data: { value },
          })
        await kubectl(`create --raw ${path} -f -`, object('1'))
        await kubectl(`replace --raw ${path}/raw -f -`, object('2'))
        expect(await kubectl(inNamespace(`get cm raw -o jsonpath='{.data.value}'`))).toBe('2')
        await kubectl(`delete --raw ${path}/raw`)
      },
    )

    test.skipIf(!there)(
      'api-versions and api-resources list what is served [GND-R42, GND-R90]',
      async () => {
        const apiVersions = (await kubectl('api-versions')).split('\n')
        for (const expected of [
          'authentication.k8s.io/v1',
          'authorization.k8s.io/v1',
          'certificates.k8s.io/v1',
          'coordination.k8s.io/v1',
          'discovery.k8s.io/v1',
          'rbac.authorization.k8s.io/v1',
          'v1',
        ])
          expect(apiVersions).toContain(expected)
        const resources = await kubectl('api-resources -o wide')
        for (const expected of [
          'configmaps',
          'leases',
          'certificatesigningrequests',
          'endpointslices',
        ])
          expect(resources).toContain(expected)
      },
    )

    test.skipIf(!there)(
      'the system namespaces and the kubernetes Service are there [GND-R47]',
      async () => {
        const names = await kubectl('get ns -o name')
        for (const name of ['default', 'kube-system', 'kube-public', 'kube-node-lease'])
          expect(names).toContain(`namespace/${name}`)
        expect(await kubectl('get svc kubernetes')).toMatch(
          /kubernetes\s+ClusterIP\s+[\d.]+\s+<none>\s+443\/TCP/,
        )
        const slice = JSON.parse(await kubectl('get endpointslice kubernetes -o json'))
        expect(slice.endpoints[0].addresses).toHaveLength(1)
      },
    )

    test.skipIf(!there)(
      'a new namespace gets its ServiceAccount and root CA [GND-R50]',
      async () => {
        await kubectl(inNamespace('wait --for=create serviceaccount/default --timeout=10s'))
        await kubectl(inNamespace('wait --for=create configmap/kube-root-ca.crt --timeout=10s'))
        const ca = await kubectl(
          inNamespace(`get cm kube-root-ca.crt -o jsonpath='{.data.ca\\.crt}'`),
        )
        expect(ca).toContain('BEGIN CERTIFICATE')
      },
    )

    test.skipIf(!there)(
      'create has all its generators for our kinds [GND-R60, GND-R90]',
      async () => {
        const lines = [
          'create configmap gen-cm --from-literal=a=1',
          'create secret generic gen-secret --from-literal=password=hunter2',
          'create secret docker-registry gen-docker --docker-username=u --docker-password=p --docker-server=example.com',
          'create serviceaccount gen-sa',
          'create service clusterip gen-svc --tcp=80:8080',
          'create service nodeport gen-np --tcp=80:8080',
          'create service loadbalancer gen-lb --tcp=80:8080',
          'create service externalname gen-ext --external-name example.com',
          'create role gen-role --verb=get,list --resource=pods',
          'create rolebinding gen-rb --role=gen-role --serviceaccount=default:default',
        ]
        for (const line of lines) expect(await kubectl(inNamespace(line))).toContain('created')
        expect(
          await kubectl(`create clusterrole gen-cr-${ns} --verb=get --resource=configmaps`),
        ).toContain('created')
        expect(
          await kubectl(`create clusterrolebinding gen-crb-${ns} --clusterrole=view --user=jane`),
        ).toContain('created')
        const secret = JSON.parse(await kubectl(inNamespace('get secret gen-secret -o json')))
        expect(Buffer.from(secret.data.password, 'base64').toString()).toBe('hunter2')
      },
    )

    test.skipIf(!there)('get prints in every form [GND-R59, GND-R90]', async () => {
      await kubectl(inNamespace('create configmap forms --from-literal=k=v'))
      await kubectl(inNamespace('label configmap forms color=red'))
      expect(await kubectl(inNamespace('get cm forms'))).toMatch(
        /NAME\s+DATA\s+AGE\nforms\s+1\s+\d+s/,
      )
      expect(await kubectl(inNamespace('get cm forms -o yaml'))).toContain('kind: ConfigMap')
      expect(JSON.parse(await kubectl(inNamespace('get cm forms -o json'))).data).toEqual({
        k: 'v',
      })
      expect(await kubectl(inNamespace('get cm forms -o wide'))).toContain('forms')
      expect(await kubectl(inNamespace('get cm forms -o name'))).toBe('configmap/forms\n')
      expect(
        await kubectl(inNamespace('get cm forms -o custom-columns=N:.metadata.name,K:.data.k')),
      ).toMatch(/N\s+K\nforms\s+v/)
      expect(await kubectl(inNamespace(`get cm forms -o jsonpath='{.data.k}'`))).toBe('v')
      expect(await kubectl(inNamespace(`get cm forms -o go-template='{{.metadata.name}}'`))).toBe(
        'forms',
      )
      expect(await kubectl(inNamespace('get cm -l color=red -o name'))).toBe('configmap/forms\n')
      expect(await kubectl(inNamespace('get cm -l color!=red -o name'))).not.toContain('forms')
      expect(
        await kubectl(inNamespace('get cm --field-selector metadata.name=forms -o name')),
      ).toBe('configmap/forms\n')
      expect(await kubectl('get cm -A -o name')).toContain('configmap/forms')
      expect(await kubectl('get cm -A --chunk-size=2 -o name')).toContain('configmap/forms')
      expect(await kubectl('get cm -A --sort-by=.metadata.name')).toContain('forms')
      expect(await kubectl('get all')).toContain('service/kubernetes')
    })

    test.skipIf(!there)('get -w shows changes as they happen [GND-R56, GND-R90]', async () => {
      const watcher = spawn(path ?? '', [
        '--kubeconfig',
        server.kubeconfig,
        '-n',
        ns,
        'get',
        'cm',
        '-w',
        '--output-watch-events',
        '-l',
        'watched=yes',
      ])
      let seen = ''
      const saw = (text: string) =>
        new Promise<void>((resolve) => {
          const look = () => seen.includes(text) && resolve()
          watcher.stdout.on('data', look)
          look()
        })
      watcher.stdout.on('data', (chunk) => {
        seen += String(chunk)
      })
      await kubectl(inNamespace('create configmap watched --from-literal=a=1'))
      await kubectl(inNamespace('label configmap watched watched=yes'))
      await saw('ADDED')
      await kubectl(inNamespace(`patch configmap watched --type merge -p '{"data":{"a":"2"}}'`))
      await saw('MODIFIED')
      await kubectl(inNamespace('delete configmap watched'))
      await saw('DELETED')
      watcher.kill()
      await once(watcher, 'exit')
      expect(seen).toMatch(/ADDED[^]*MODIFIED[^]*DELETED/)
    })

    test.skipIf(!there)('describe works for every kind [GND-R90]', async () => {
      await kubectl(inNamespace('create configmap described --from-literal=k=v'))
      expect(await kubectl(inNamespace('describe cm described'))).toContain(
        'Name:         described',
      )
      for (const line of [
        'describe ns default',
        'describe svc kubernetes',
        'describe clusterrole view',
        'describe clusterrolebinding cluster-admin',
        'describe endpointslice kubernetes',
        'describe sa default',
      ])
        expect(await kubectl(line)).toContain('Name:')
    })

    test.skipIf(!there)(
      'apply creates, changes, prunes fields and says unchanged [GND-R57, GND-R90]',
      async () => {
        const manifest = (data: string) =>
          `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: applied\n  namespace: ${ns}\ndata:\n${data}`
        expect(await kubectl('apply -f -', manifest('  a: "1"\n  b: "2"\n'))).toContain('created')
        expect(await kubectl('apply -f -', manifest('  a: "1"\n  b: "2"\n'))).toContain('unchanged')
        expect(await kubectl('diff -f -', manifest('  a: "1"\n  b: "2"\n'))).toBe('')
        const diff = await kubectl.outcome('diff -f -', manifest('  a: "9"\n'))
        expect(diff.code).toBe(1)
        expect(diff.stdout).toContain('+  a: "9"')
        expect(await kubectl('apply -f -', manifest('  a: "9"\n'))).toContain('configured')
        expect(JSON.parse(await kubectl(inNamespace('get cm applied -o json'))).data).toEqual({
          a: '9',
        })
        const service = (port: number) =>
          `apiVersion: v1\nkind: Service\nmetadata:\n  name: applied\n  namespace: ${ns}\nspec:\n  selector:\n    app: x\n  ports:\n  - name: one\n    port: ${port}\n  - name: two\n    port: 443\n`
        expect(await kubectl('apply -f -', service(80))).toContain('created')
        expect(await kubectl('apply -f -', service(81))).toContain('configured')
        const ports = JSON.parse(await kubectl(inNamespace('get svc applied -o json'))).spec.ports
        expect(ports.map((one: { port: number }) => one.port)).toEqual([81, 443])
      },
    )

    test.skipIf(!there)(
      'apply refuses unknown fields and names them [GND-R58, GND-R62]',
      async () => {
        const bad = `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: bad\n  namespace: ${ns}\ndatta:\n  a: b\n`
        const outcome = await kubectl.outcome('apply -f -', bad)
        expect(outcome.code).toBe(1)
        expect(outcome.stderr).toContain('unknown field "datta"')
      },
    )

    test.skipIf(!there)(
      'server-side apply gets a 415 that names the way out [GND-R57]',
      async () => {
        const manifest = `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ssa\n  namespace: ${ns}\n`
        const outcome = await kubectl.outcome('apply --server-side -f -', manifest)
        expect(outcome.code).toBe(1)
        expect(outcome.stderr).toContain('without --server-side')
      },
    )

    test.skipIf(!there)(
      'replace, edit, the three patches, label and annotate change objects [GND-R57, GND-R90]',
      async () => {
        await kubectl(inNamespace('create configmap edited --from-literal=a=1'))
        const object = JSON.parse(await kubectl(inNamespace('get cm edited -o json')))
        object.data = { a: '2' }
        expect(await kubectl('replace -f -', JSON.stringify(object))).toContain('replaced')
        const stale = await kubectl.outcome('replace -f -', JSON.stringify(object))
        expect(stale.stderr).toContain('the object has been modified')
        const editor = join(scratch, 'editor')
        await writeFile(editor, '#!/bin/sh\nsed -i s/2/3/ "$1"\n', { mode: 0o755 })
        const edit = await run(
          path ?? '',
          ['--kubeconfig', server.kubeconfig, '-n', ns, 'edit', 'cm', 'edited'],
          { env: { KUBE_EDITOR: editor } },
        )
        expect(edit.stdout + edit.stderr).toContain('edited')
        await kubectl(
          inNamespace(
            `patch cm edited --type json -p '[{"op":"add","path":"/data/b","value":"4"}]'`,
          ),
        )
        await kubectl(inNamespace(`patch cm edited --type merge -p '{"data":{"c":"5"}}'`))
        await kubectl(inNamespace(`patch cm edited --type strategic -p '{"data":{"d":"6"}}'`))
        await kubectl(inNamespace('label cm edited tier=back'))
        await kubectl(inNamespace('annotate cm edited note=hello'))
        const { data, metadata } = JSON.parse(await kubectl(inNamespace('get cm edited -o json')))
        expect(data).toMatchObject({ b: '4', c: '5', d: '6' })
        expect(metadata.labels).toEqual({ tier: 'back' })
        expect(metadata.annotations).toEqual({ note: 'hello' })
      },
    )

    test.skipIf(!there)(
      'delete by name, label and --all waits until objects are gone [GND-R53, GND-R90]',
      async () => {
        for (const name of ['d1', 'd2', 'd3'])
          await kubectl(inNamespace(`create configmap ${name}`))
        await kubectl(inNamespace('label cm d1 doomed=yes'))
        expect(await kubectl(inNamespace('delete cm d2 --wait'))).toContain('deleted')
        expect(await kubectl(inNamespace('delete cm -l doomed=yes'))).toContain('"d1" deleted')
        await kubectl(inNamespace('delete cm --all'))
        expect(await kubectl(inNamespace('get cm -o name'))).not.toContain('d3')
        const missing = await kubectl.outcome(inNamespace('delete cm d2'))
        expect(missing.stderr).toContain('configmaps "d2" not found')
      },
    )

    test.skipIf(!there)('explain knows the fields of every kind [GND-R43, GND-R90]', async () => {
      expect(await kubectl('explain configmap')).toContain('data')
      expect(await kubectl('explain pod.spec.containers')).toContain('image')
      expect(await kubectl('explain service.spec --recursive')).toContain('clusterIP')
      expect(await kubectl('explain certificatesigningrequest.spec')).toContain('signerName')
    })

    test.skipIf(!there)('auth can-i, whoami and reconcile answer [GND-R46, GND-R90]', async () => {
      expect(await kubectl('auth can-i create pods')).toBe('yes\n')
      expect((await kubectl.outcome('auth can-i create pods --as jane')).stdout).toBe('no\n')
      expect(await kubectl('auth can-i --list')).toContain('*.*')
      expect(await kubectl('auth whoami')).toContain('Username')
      const role = `apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: reconciled\n  namespace: ${ns}\nrules:\n- apiGroups: [""]\n  resources: ["pods"]\n  verbs: ["get"]\n`
      expect(await kubectl('auth reconcile -f -', role)).toContain('reconciled')
    })

    test.skipIf(!there)(
      'certificate approve and deny set conditions [GND-R45, GND-R90]',
      async () => {
        const key = join(scratch, 'csr.key')
        const request = await run('openssl', [
          'req',
          '-new',
          '-newkey',
          'ec',
          '-pkeyopt',
          'ec_paramgen_curve:P-256',
          '-nodes',
          '-keyout',
          key,
          '-subj',
          '/CN=jane/O=dev',
        ])
        const csr = (name: string) =>
          `apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\nmetadata:\n  name: ${name}\nspec:\n  request: ${Buffer.from(request.stdout).toString('base64')}\n  signerName: kubernetes.io/kube-apiserver-client\n  usages: ["client auth"]\n`
        await kubectl('create -f -', csr('yes-please'))
        await kubectl('create -f -', csr('no-thanks'))
        expect(await kubectl('certificate approve yes-please')).toContain('approved')
        expect(await kubectl('certificate deny no-thanks')).toContain('denied')
        const table = await kubectl('get csr')
        expect(table).toMatch(/yes-please.*Approved/)
        expect(table).toMatch(/no-thanks.*Denied/)
        await kubectl('delete csr yes-please no-thanks')
      },
    )

    test.skipIf(!there)('wait sees conditions, values and deletion [GND-R90]', async () => {
      await kubectl(inNamespace('create configmap waited --from-literal=a=1'))
      await kubectl(inNamespace(`wait cm/waited --for=jsonpath='{.data.a}'=1 --timeout=5s`))
      const openWatches = async () =>
        /^apiserver_longrunning_requests (\d+)$/m.exec(await kubectl('get --raw /metrics'))?.[1]
      const before = await openWatches()
      const gone = kubectl(inNamespace('wait cm/waited --for=delete --timeout=30s'))
      // Older versions say nothing of an object that is gone before they have begun to look.
      await eventually('kubectl watches', async () => (await openWatches()) !== before)
      await kubectl(inNamespace('delete cm waited'))
      expect(await gone).toContain('condition met')
    })

    test.skipIf(!there)('deleting a namespace takes its content with it [GND-R49]', async () => {
      await kubectl('create namespace doomed')
      await kubectl('-n doomed create configmap inside')
      await kubectl('delete namespace doomed --timeout=20s')
      expect((await kubectl.outcome('get namespace doomed')).stderr).toContain('not found')
      expect((await kubectl.outcome('-n doomed get cm inside')).stderr).toContain('not found')
    })

    test.skipIf(!there)('endpoints follow Services and ready Pods [GND-R51]', async () => {
      await kubectl(inNamespace('create service clusterip web --tcp=80:8080'))
      const pod = `apiVersion: v1\nkind: Pod\nmetadata:\n  name: web-1\n  namespace: ${ns}\n  labels:\n    app: web\nspec:\n  containers:\n  - name: web\n    image: nginx\n`
      await kubectl('create -f -', pod)
      await kubectl(
        inNamespace(
          `patch pod web-1 --subresource=status --type=merge -p '{"status":{"phase":"Running","podIP":"10.1.2.3","podIPs":[{"ip":"10.1.2.3"}],"conditions":[{"type":"Ready","status":"True"}]}}'`,
        ),
      )
      await kubectl(
        inNamespace(
          `wait endpoints/web --for=jsonpath='{.subsets[0].addresses[0].ip}'=10.1.2.3 --timeout=10s`,
        ),
      )
      const slices = await kubectl(
        inNamespace('get endpointslice -l kubernetes.io/service-name=web'),
      )
      expect(slices).toContain('10.1.2.3')
      expect(await kubectl(inNamespace('get pod web-1'))).toMatch(/web-1\s+\d\/1\s+Running/)
    })
  },
)
