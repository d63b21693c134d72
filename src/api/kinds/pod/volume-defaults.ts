import { isRecord } from '../../../core/index.ts'
import { type Fields, fieldsAt, isUnset, recordsAt, setDefault, textAt } from '../fields.ts'
import { fieldRefDefaults } from './container-defaults.ts'
import { imageTag } from './image-tag.ts'

/** 0644 as JSON writes it. */
const fileMode = 420
const tokenSeconds = 3600

/** Fields that the sources of volumes have unless told otherwise. */
const sourceDefaults: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  secret: { defaultMode: fileMode },
  configMap: { defaultMode: fileMode },
  downwardAPI: { defaultMode: fileMode },
  projected: { defaultMode: fileMode },
  iscsi: { iscsiInterface: 'default' },
  rbd: { pool: 'rbd', user: 'admin', keyring: '/etc/ceph/keyring' },
  azureDisk: { cachingMode: 'ReadWrite', fsType: 'ext4', readOnly: false, kind: 'Shared' },
  scaleIO: { storageMode: 'ThinProvisioned', fsType: 'xfs' },
}

function projectedDefaults(projected: Fields): void {
  for (const source of recordsAt(projected, 'sources')) {
    const token = source['serviceAccountToken']
    if (isRecord(token)) setDefault(token, 'expirationSeconds', tokenSeconds)
    for (const item of recordsAt(fieldsAt(source, 'downwardAPI'), 'items')) fieldRefDefaults(item)
  }
}

function specialDefaults(volume: Fields): void {
  const { hostPath, image } = volume
  if (isRecord(hostPath)) hostPath['type'] ??= ''
  if (isRecord(image)) {
    const isMoving = imageTag(textAt(image, 'reference')) === 'latest'
    setDefault(image, 'pullPolicy', isMoving ? 'Always' : 'IfNotPresent')
  }
  const claim = fieldsAt(fieldsAt(volume, 'ephemeral'), 'volumeClaimTemplate')
  if (isRecord(claim['spec'])) setDefault(claim['spec'], 'volumeMode', 'Filesystem')
}

/** Fills in Kubernetes' defaults of one volume, in place. */
export function volumeDefaults(volume: Fields): void {
  const hasSource = Object.keys(volume).some((key) => key !== 'name' && !isUnset(volume[key]))
  if (!hasSource) volume['emptyDir'] = {}
  for (const [source, defaults] of Object.entries(sourceDefaults)) {
    const found = volume[source]
    if (!isRecord(found)) continue
    for (const [field, value] of Object.entries(defaults)) setDefault(found, field, value)
  }
  specialDefaults(volume)
  projectedDefaults(fieldsAt(volume, 'projected'))
  for (const item of recordsAt(fieldsAt(volume, 'downwardAPI'), 'items')) fieldRefDefaults(item)
}
