{{- define "numalign.collector-container" -}}
name: collector
image: {{ .Values.collector.image | quote }}
args: [--config, /etc/otelcol/collector.yaml]
envFrom:
- configMapRef:
    name: {{ include "numalign.fullname" . }}-telemetry
env:
- name: NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
livenessProbe:
  httpGet:
    port: 13133
    path: /
  timeoutSeconds: 5
  periodSeconds: 30
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
resources:
  {{- toYaml .Values.collector.resources | nindent 2 }}
volumeMounts:
- {name: collector, mountPath: /etc/otelcol, readOnly: true}
{{- end }}
