import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from './kubectl.ts'
import { addresses, ports, type SplitCluster } from './split-cluster.ts'

const group = 'system:bootstrappers'
const token = { id: 'abcdef', secret: '0123456789abcdef' }

async function openssl(directory: string, ...args: readonly string[]): Promise<void> {
  const { code, stderr } = await run('sh', [
    '-c',
    'cd "$0" && exec openssl "$@"',
    directory,
    ...args,
  ])
  if (code !== 0) throw new Error(`openssl ${args[0]} failed: ${stderr}`)
}

/** What an administrator prepares: a bootstrap token that may ask for certificates. */
export async function allowBootstrap(cluster: SplitCluster): Promise<void> {
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'bootstrap.kubernetes.io/token',
    metadata: { name: `bootstrap-token-${token.id}`, namespace: 'kube-system' },
    stringData: {
      'token-id': token.id,
      'token-secret': token.secret,
      'usage-bootstrap-authentication': 'true',
    },
  }
  await cluster.kubectl('create', '-f', await cluster.write('bootstrap-token.json', secret))
  const role = ['--clusterrole=system:node-bootstrapper', `--group=${group}`]
  await cluster.kubectl('create', 'clusterrolebinding', 'bootstrap', ...role)
}

async function kubeconfigFor(cluster: SplitCluster, name: string, user: object): Promise<string> {
  const ca = await readFile(join(cluster.directory, 'pki', 'ca.crt'), 'base64')
  const server = `https://${addresses.bind}:${ports.api}`
  return cluster.write(`${name}.kubeconfig`, {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server, 'certificate-authority-data': ca } }],
    users: [{ name, user }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    'current-context': name,
  })
}

/** What the signing controller of a cluster does once a request is approved. */
async function approveAndSign(cluster: SplitCluster, name: string): Promise<void> {
  const { directory } = cluster.lab
  await cluster.kubectl('certificate', 'approve', name)
  const ca = join(cluster.directory, 'pki')
  const extensions = join(directory, 'client.ext')
  await writeFile(extensions, 'extendedKeyUsage=clientAuth\n')
  const signer = ['-CA', join(ca, 'ca.crt'), '-CAkey', join(ca, 'ca.key'), '-days', '1']
  const files = ['-in', `${name}.csr`, '-out', `${name}.crt`, '-extfile', extensions]
  await openssl(directory, 'x509', '-req', ...signer, ...files)
  const request = JSON.parse(await cluster.kubectl('get', 'csr', name, '-o', 'json'))
  request.status.certificate = await readFile(join(directory, `${name}.crt`), 'base64')
  const url = `/apis/certificates.k8s.io/v1/certificatesigningrequests/${name}/status`
  const signed = await cluster.write('signed.json', request)
  await cluster.kubectl('replace', '--raw', url, '-f', signed)
}

/**
 * Does on the node what a kubelet does with a bootstrap kubeconfig that names the agent's address;
 * returns the kubeconfig of the certificate that it got.
 */
export async function bootstrapNode(cluster: SplitCluster, name: string): Promise<string> {
  const { directory } = cluster.lab
  const bearer = { token: `${token.id}.${token.secret}` }
  const bootstrap = await kubeconfigFor(cluster, 'bootstrap', bearer)
  const subject = ['-subj', `/O=system:nodes/CN=system:node:${name}`]
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-noenc']
  const files = ['-keyout', `${name}.key`, '-out', `${name}.csr`]
  await openssl(directory, 'req', '-new', ...key, ...subject, ...files)
  const request = await cluster.write(`${name}-request.json`, {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: {
      request: await readFile(join(directory, `${name}.csr`), 'base64'),
      signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
      usages: ['digital signature', 'client auth'],
    },
  })
  await cluster.kubectlIn(cluster.node, bootstrap, 'create', '-f', request)
  await approveAndSign(cluster, name)
  const field = 'jsonpath={.status.certificate}'
  const wanted = ['get', 'csr', name, '-o', field]
  const certificate = await cluster.kubectlIn(cluster.node, bootstrap, ...wanted)
  return kubeconfigFor(cluster, name, {
    'client-certificate-data': certificate,
    'client-key-data': await readFile(join(directory, `${name}.key`), 'base64'),
  })
}
