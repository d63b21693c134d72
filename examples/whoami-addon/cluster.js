// The API server, asked as the add-on's own service account.
import { readFile } from 'node:fs/promises'
import { request } from 'node:https'
import process from 'node:process'

const answerMs = 10_000
const shown = 50

/** The keys of add-on tokens, for clusters that sign them with a key of their own (`--addon-token-key dedicated`). */
export async function tokenKeys(directory, signal) {
  const { status, body } = await ask(directory, { path: '/addon/v1/jwks', signal })
  if (status !== 200) throw new Error(`the API server answered ${status}`)
  return body
}

/** Every user is in it without being asked for it. */
const everybody = 'system:authenticated'

/**
 * The names of ConfigMaps, or why the user may not see them: requested on behalf of the user. The add-on itself has no
 * right to read them, and may act for its visitors only (see whoami.yaml).
 */
export async function listConfigMaps(user, namespace, directory) {
  if (!process.env.KUBERNETES_SERVICE_HOST)
    return { message: 'no cluster: this runs outside of a Pod' }
  if (!/^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/.test(namespace))
    return { status: 400, message: 'that is not the name of a namespace' }
  const groups = user.groups.filter((group) => group !== everybody)
  const { status, body } = await ask(directory, {
    path: `/api/v1/namespaces/${namespace}/configmaps?limit=${shown}`,
    headers: {
      'Impersonate-User': latin1(user.user),
      ...(groups.length > 0 && { 'Impersonate-Group': groups.map(latin1) }),
    },
  })
  const { items, message, metadata } = JSON.parse(body)
  if (status !== 200) return { status, message: message ?? `the API answered ${status}` }
  return {
    status,
    names: items.map((item) => item.metadata.name),
    isCut: Boolean(metadata.continue),
  }
}

/** Headers are bytes: UTF-8 must not be narrowed. */
const latin1 = (text) => Buffer.from(text).toString('latin1')

async function ask(directory, { path, headers = {}, signal }) {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env
  // Both are replaced while we run.
  const [token, ca] = await Promise.all([
    readFile(`${directory}/token`, 'utf8'),
    readFile(`${directory}/ca.crt`),
  ])
  const own = { Authorization: `Bearer ${token.trim()}`, Accept: 'application/json' }
  return get({ host, port, ca, path, signal, headers: { ...own, ...headers } })
}

function get(options) {
  return new Promise((resolve, reject) => {
    const asked = request({ ...options, timeout: answerMs }, (response) => {
      const chunks = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () =>
        resolve({ status: response.statusCode, body: Buffer.concat(chunks) }),
      )
    })
    asked.on('timeout', () => asked.destroy(new Error('the API did not answer in time')))
    asked.on('error', reject)
    asked.end()
  })
}
