// Acts for the user: asks the API server as the add-on's own service account, on behalf of the user. What comes back
// is what the user may see; the add-on itself has no right to read ConfigMaps.
import { readFile } from 'node:fs/promises'
import { request } from 'node:https'
import process from 'node:process'

const answerMs = 10_000
const shown = 50

/** The names of ConfigMaps, or why the user may not see them. */
export async function listConfigMaps(user, namespace, directory) {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env
  if (!host || !port) return { message: 'no cluster: this runs outside of a Pod' }
  if (!/^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/.test(namespace))
    return { status: 400, message: 'that is not the name of a namespace' }
  // Both are replaced while we run.
  const [token, ca] = await Promise.all([
    readFile(`${directory}/token`, 'utf8'),
    readFile(`${directory}/ca.crt`),
  ])
  const { status, body } = await get({
    host,
    port,
    ca,
    path: `/api/v1/namespaces/${namespace}/configmaps?limit=${shown}`,
    headers: {
      Authorization: `Bearer ${token.trim()}`,
      Accept: 'application/json',
      'Impersonate-User': Buffer.from(user.user).toString('latin1'),
      ...(user.uid && { 'Impersonate-Uid': user.uid }),
      ...(user.groups.length > 0 && { 'Impersonate-Group': user.groups.map(latin1) }),
    },
  })
  if (status !== 200) return { status, message: body.message ?? `the API answered ${status}` }
  return { status, names: body.items.map(({ metadata }) => metadata.name) }
}

/** Headers are bytes: UTF-8 must not be narrowed. */
const latin1 = (text) => Buffer.from(text).toString('latin1')

function get(options) {
  return new Promise((resolve, reject) => {
    const asked = request({ ...options, timeout: answerMs }, (response) => {
      const chunks = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        try {
          const body = JSON.parse(Buffer.concat(chunks).toString())
          resolve({ status: response.statusCode, body })
        } catch (error) {
          reject(error)
        }
      })
    })
    asked.on('timeout', () => asked.destroy(new Error('the API did not answer in time')))
    asked.on('error', reject)
    asked.end()
  })
}
