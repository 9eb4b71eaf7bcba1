{{/* The agents of the pod. */}}

{{/* The one container that may do something on the node. It is root to reach the runtime's
     socket and control groups; DAC_OVERRIDE lets it reach what belongs to another user. */}}
{{- define "numalign.nri" -}}
name: nri
{{ include "numalign.image" . }}
command: [numalign-agent]
args: [nri, --config, /etc/numalign/config.yaml, --node-name, $(NODE_NAME)]
env:
{{- with include "numalign.telemetry" . }}
{{ . }}
{{- end }}
- name: NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
ports:
- {name: metrics, containerPort: 9470}
{{ include "numalign.agent-probes" 9470 }}
securityContext:
  runAsNonRoot: false
  runAsUser: 0
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
    add: [DAC_OVERRIDE]
resources:
  {{- toYaml .Values.nri.resources | nindent 2 }}
volumeMounts:
- {name: config, mountPath: /etc/numalign, readOnly: true}
- {name: sockets, mountPath: /run/numalign}
- {name: state, mountPath: /var/lib/numalign}
- {name: runtime, mountPath: /var/run/nri}
- {name: host, mountPath: /host, readOnly: true, mountPropagation: HostToContainer}
# To lift quotas; above the read-only mount.
- {name: cgroups, mountPath: /host/sys/fs/cgroup}
- {name: api-access, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
{{- end }}

{{/* Tells the cluster that the node is ready. It has a token, and nothing of the host. */}}
{{- define "numalign.node" -}}
name: node
{{ include "numalign.image" . }}
command: [numalign-agent]
args: [node, --config, /etc/numalign/config.yaml, --node-name, $(NODE_NAME)
  {{- if .Values.node.exportTopology }}, --export-topology{{ end }}]
env:
- name: NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
ports:
- {name: metrics, containerPort: 9471}
{{ include "numalign.agent-probes" 9471 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
resources:
  {{- toYaml .Values.node.resources | nindent 2 }}
volumeMounts:
- {name: config, mountPath: /etc/numalign, readOnly: true}
- {name: sockets, mountPath: /run/numalign}
- {name: api-access, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
{{- end }}

{{/* How both are asked; takes the port of their pages. */}}
{{- define "numalign.agent-probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: {{ . }}}
  timeoutSeconds: 5
  periodSeconds: 5
  failureThreshold: 24
livenessProbe:
  httpGet: {path: /healthz, port: {{ . }}}
  timeoutSeconds: 5
  periodSeconds: 30
  failureThreshold: 4
readinessProbe:
  httpGet: {path: /readyz, port: {{ . }}}
  timeoutSeconds: 5
  periodSeconds: 15
{{- end }}
