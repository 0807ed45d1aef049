"""Networks on pictures, as torchvision and transformers define them, and a UNet."""

import functools

import torch
import torchvision
import transformers
from torch import nn

from .source import Source, settle

BATCHES = ({"batch": 2}, {"batch": 3})
BATCH_AXIS = {"pixels": {0: "batch"}}


def picture(batch, side=224):
    return {"pixels": torch.randn(batch, 3, side, side)}


def drawn(module):
    """Random numbers where a layer starts at zero, as the head of torchvision's ViT: its answers would all be zero."""
    for layer in module.modules():
        if isinstance(layer, nn.Linear) and not layer.weight.any():
            nn.init.normal_(layer.weight, std=0.05)
    return module


def classifier(name, make):
    """`make` is torchvision's function; its networks have 1000 classes."""
    build = lambda: settle(drawn(make(weights=None)), picture(2)["pixels"])
    return Source(name, build, picture, ("logits",), BATCH_AXIS, BATCHES)


class UNet(nn.Module):
    """Ronneberger et al. 2015 with group norms: a way down by max pools, a way up by transposed convolutions or by resizing,
    and what was on the same level joined on."""

    def __init__(self, widths=(16, 32, 64, 128), classes=5):
        super().__init__()
        pairs = list(zip(widths, widths[1:]))
        self.stem = self.block(3, widths[0])
        self.down = nn.ModuleList(self.block(a, b) for a, b in pairs)
        self.up = nn.ModuleList(self.rise(level, b, a) for level, (a, b) in enumerate(pairs))
        self.join = nn.ModuleList(self.block(2 * a, a) for a, _ in pairs)
        self.head = nn.Conv2d(widths[0], classes, 1)

    @staticmethod
    def block(inputs, outputs):
        layers = []
        for width in (inputs, outputs):
            layers += [nn.Conv2d(width, outputs, 3, padding=1, bias=False), nn.GroupNorm(4, outputs), nn.SiLU()]
        return nn.Sequential(*layers)

    @staticmethod
    def rise(level, inputs, outputs):
        if level:
            return nn.ConvTranspose2d(inputs, outputs, 2, 2)
        return nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False), nn.Conv2d(inputs, outputs, 1))

    def forward(self, pixels):
        levels = [self.stem(pixels)]
        for block in self.down:
            levels.append(block(nn.functional.max_pool2d(levels[-1], 2)))
        x = levels.pop()
        for rise, join in reversed(list(zip(self.up, self.join))):
            x = join(torch.cat([levels.pop(), rise(x)], 1))
        return self.head(x)


def anyPicture(batch, height, width):
    return {"pixels": torch.randn(batch, 3, height, width)}


class Detector(nn.Module):
    """Boxes and classes of transformers' DETR."""

    def __init__(self):
        super().__init__()
        backbone = transformers.ResNetConfig(embedding_size=32, hidden_sizes=[64, 128, 256, 512], depths=[3, 4, 6, 3],
                                             out_features=["stage4"])
        config = transformers.DetrConfig(use_timm_backbone=False, use_pretrained_backbone=False, backbone_config=backbone, backbone=None,
                                         d_model=128, encoder_layers=3, decoder_layers=3, encoder_ffn_dim=512, decoder_ffn_dim=512,
                                         num_queries=50, attn_implementation="eager")
        self.detr = transformers.DetrForObjectDetection(config)

    def forward(self, pixels):
        found = self.detr(pixel_values=pixels)
        return found.logits, found.pred_boxes


SOURCES = [
    classifier("resnet50", torchvision.models.resnet50),
    classifier("mobilenet-v3", torchvision.models.mobilenet_v3_large),
    classifier("efficientnet-b0", torchvision.models.efficientnet_b0),
    classifier("vit-b16", torchvision.models.vit_b_16),
    classifier("swin-t", torchvision.models.swin_t),
    classifier("convnext-t", torchvision.models.convnext_tiny),
    Source("detr", Detector, functools.partial(picture, side=256), ("logits", "boxes"), BATCH_AXIS, BATCHES),
    Source("unet", UNet, anyPicture, ("logits",), {"pixels": {0: "batch", 2: "height", 3: "width"}},
           ({"batch": 2, "height": 64, "width": 96}, {"batch": 1, "height": 128, "width": 80})),
]
