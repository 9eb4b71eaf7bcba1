{{/* The services of the pod: one container each, or one for all. */}}

{{/* By container: what it serves, whom its probes ask, its port, whether it reads the node's root,
     and whether devices are its matter. */}}
{{- define "numalign.services" -}}
{{- if eq .Values.services.layout "all-in-one" }}
- {name: services, serves: all, asked: admission, port: 9464, host: true, devices: true}
{{- else }}
- {name: admission, serves: admission, asked: admission, port: 9464, host: true, devices: false}
- {name: topology, serves: topology, asked: topology, port: 9465, host: false, devices: false}
- {name: cpu, serves: cpu, asked: cpu, port: 9466, host: true, devices: false}
- {name: memory, serves: memory, asked: memory, port: 9467, host: true, devices: false}
- {name: device, serves: device, asked: device, port: 9468, host: false, devices: true}
{{- end }}
{{- end }}

{{- define "numalign.service-resources" -}}
{{- if .Values.services.resources }}
{{- toYaml .Values.services.resources }}
{{- else if eq .Values.services.layout "all-in-one" -}}
requests: {cpu: 100m, memory: 192Mi}
limits: {memory: 768Mi}
{{- else -}}
requests: {cpu: 20m, memory: 96Mi}
limits: {memory: 384Mi}
{{- end }}
{{- end }}

{{/* One of them; takes {root, service}. */}}
{{- define "numalign.service" -}}
{{- $root := .root -}}
{{- $devices := and .service.devices (ne $root.Values.devices.mode "none") -}}
{{- $command := list "numalign" "ready" .service.asked -}}
{{- $to := list "--timeout" "5" "--config" "/etc/numalign/config.yaml" -}}
name: {{ .service.name }}
{{ include "numalign.image" $root }}
args: [serve, {{ .service.serves }}, --config, /etc/numalign/config.yaml]
{{- with include "numalign.telemetry" $root }}
env:
{{ . }}
{{- end }}
ports:
- {name: metrics, containerPort: {{ .service.port }}}
startupProbe:
  exec:
    command: {{ concat $command (list "--live") $to | toJson }}
  timeoutSeconds: 10
  periodSeconds: 5
  failureThreshold: 24
livenessProbe:
  exec:
    command: {{ concat $command (list "--live") $to | toJson }}
  timeoutSeconds: 10
  periodSeconds: 30
  failureThreshold: 4
readinessProbe:
  exec:
    command: {{ concat $command $to | toJson }}
  timeoutSeconds: 10
  periodSeconds: 15
securityContext:
  {{- if $devices }}
  # The sockets of a kubelet, and those of device plugins, are for root alone.
  runAsNonRoot: false
  runAsUser: 0
  {{- end }}
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
    {{- if $devices }}
    add: [DAC_OVERRIDE]
    {{- end }}
resources:
  {{- include "numalign.service-resources" $root | nindent 2 }}
volumeMounts:
- {name: config, mountPath: /etc/numalign, readOnly: true}
- {name: sockets, mountPath: /run/numalign}
- {name: state, mountPath: /var/lib/numalign}
{{- if .service.host }}
# Who else hands out CPUs or memory on this node, and how full its disks are.
- {name: host, mountPath: /host, readOnly: true, mountPropagation: HostToContainer}
{{- end }}
{{- if $devices }}
{{- if eq $root.Values.devices.mode "observer" }}
- {name: pod-resources, mountPath: /var/lib/kubelet/pod-resources, readOnly: true}
{{- else }}
- {name: device-plugins, mountPath: /var/lib/numalign-device-plugins}
{{- end }}
{{- end }}
{{- end }}

{{/* Where spans go, as entries of `env`; nothing without a collector. */}}
{{- define "numalign.telemetry" -}}
{{- if .Values.collector.enabled -}}
- {name: OTEL_EXPORTER_OTLP_ENDPOINT, value: "http://127.0.0.1:4317"}
{{- end }}
{{- end }}
